"""The stages of rollout matching on plain lists and dicts, with the code of the training loop.

Token ids and coordinates may also be arrays or tensors (anything with `tolist()`). Bins are
integers 0..999, thousandths of the image's side.
Every function releases the interpreter's lock while it works and may be called from several
threads. Wrong input raises rematch.Error.
"""

import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, TypedDict, Union

try:
    from rematch import _stages
except ImportError as error:
    _modules = (
        ", ".join(sorted(path.name for path in Path(__file__).parent.glob("_stages.*.so")))
        or "none"
    )
    raise ImportError(
        f"rematch has no module for this Python ({error}); here are: {_modules} (abi3 serves all "
        "from 3.12 on); docs/python.md explains "
        "how to build one"
    ) from error

Model = Union[str, "os.PathLike[str]"]
"""A model directory; only tokenizer.json and an optional generation_config.json are read, once per
process.
"""


class SceneObject(TypedDict, total=False):
    """One thing: what (desc) and where, by exactly one of bbox_2d (x1, y1, x2, y2) and poly (x, y
    of three or more vertices).
    """

    desc: str
    bbox_2d: Sequence[int]
    poly: Sequence[int]


class ParsedObject(TypedDict):
    """A valid object of an answer."""

    key: str
    index: int
    desc: str
    geometry: str  # "bbox_2d" or "poly"
    bins: List[int]
    coord_token_indices: List[int]  # of each bin's token in the response


class Parsed(TypedDict):
    """An answer read strictly."""

    response_token_ids: List[int]  # cut at the first stop token
    prefix_token_ids: List[int]  # kept part: up to the end of the last complete entry
    prefix_text: str
    objects: List[ParsedObject]
    max_object_index: Optional[int]
    dropped_invalid: int
    status: str  # "complete", "truncated" or "malformed"


class Matching(TypedDict):
    """Pairs of predictions and truths, as positions in the two lists."""

    pairs: List[List[int]]  # [prediction, truth]
    false_positives: List[int]
    false_negatives: List[int]
    gating_rejections: int
    matched_maskiou_sum: float


class Segment(TypedDict):
    """A teacher-forced sequence: prompt, kept answer, what was missing."""

    token_ids: List[int]
    labels: List[int]  # -100 for no cross-entropy
    coord_slots: List[List[Any]]  # [position, bin, "prefix" or "append"]
    prompt_len: int
    prefix_len: int
    append_len: int
    append_text: str
    pairs: List[List[int]]
    false_negatives: List[int]
    excluded_from_supervision: int
    encoded_len: int


class Packed(TypedDict):
    """The next row."""

    selected: List[int]  # positions in encoded_lens
    total: int
    fill: float


class Scene(TypedDict, total=False):
    """Answer and truth of an image, for example a line of an evaluation's samples.jsonl."""

    predictions: Sequence[SceneObject]  # in the order of the answer
    scores: Sequence[float]  # of the predictions, 0..1; may be absent
    ground_truth: Sequence[SceneObject]
    width: int  # pixels
    height: int
    status: str  # of parse(); in all scenes or in none


def _given(**options: Any) -> Dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def parse(
    response_token_ids: Sequence[int],
    *,
    model: Model,
    answer_format: Optional[str] = None,
    resized_px: Optional[Sequence[int]] = None,
) -> Parsed:
    """Reads the token ids of an answer strictly: its valid objects, and the kept prefix.

    Args:
        response_token_ids: what the model wrote after the prompt; a stop token and what follows are
            cut off.
        model: the model directory.
        answer_format: "coord_tokens", "qwen_json", "qwen2_5_json", "qwen_boxes"
            or "qwen2_5_boxes"; None is that of the model
            directory.
        resized_px: width and height of the image as the model sees it, for answers in pixels
            ("qwen2_5_json").

    Example:
        >>> parsed = rematch.parse(response_token_ids, model="DIR")               # doctest: +SKIP
        >>> objects = [(one["desc"], one["bins"]) for one in parsed["objects"]]   # doctest: +SKIP
        >>> parsed["status"], objects                                             # doctest: +SKIP
        ('complete', [('cup', [104, 96, 310, 300])])
    """
    return _stages.parse(
        os.fspath(model),
        answer_format or "",
        _given(response_token_ids=response_token_ids, resized_px=resized_px),
    )


def match(
    predictions: Sequence[SceneObject],
    ground_truth: Sequence[SceneObject],
    *,
    candidate_top_k: Optional[int] = None,
    maskiou_gate: Optional[float] = None,
    maskiou_resolution: Optional[int] = None,
    fp_cost: Optional[float] = None,
    fn_cost: Optional[float] = None,
) -> Matching:
    """Pairs predictions with truths by the IoU of their masks. Ignores descriptions.

    Args:
        candidate_top_k: truths that each prediction is compared with (10).
        maskiou_gate: pairs below it are refused (0.3).
        maskiou_resolution: side of the masks' canvas in pixels (256).
        fp_cost, fn_cost: costs of an unmatched prediction and of an unmatched truth (1).

    Example:
        >>> cup, plate = {"bbox_2d": [100, 100, 300, 300]}, {"bbox_2d": [400, 420, 900, 880]}
        >>> found = rematch.match([{"bbox_2d": [104, 96, 310, 300]}], [cup, plate])
        >>> found["pairs"], found["false_negatives"]
        ([[0, 0]], [1])
    """
    options = _given(
        candidate_top_k=candidate_top_k,
        maskiou_gate=maskiou_gate,
        maskiou_resolution=maskiou_resolution,
        fp_cost=fp_cost,
        fn_cost=fn_cost,
    )
    return _stages.match(
        {"predictions": predictions, "ground_truth": ground_truth, "options": options}
    )


def segment(
    prompt_token_ids: Sequence[int],
    response_token_ids: Sequence[int],
    ground_truth: Sequence[SceneObject],
    *,
    model: Model,
    options: Optional[Mapping[str, Any]] = None,
    answer_format: Optional[str] = None,
    resized_px: Optional[Sequence[int]] = None,
) -> Segment:
    """Makes a training sequence: keeps the answer's prefix, gives its matched objects the true
    coordinates as targets, and appends missing
    objects (or rewrites the whole answer, by target_policy).

    Args:
        prompt_token_ids: with every image pad expanded.
        ground_truth: objects with desc, in the order for appending missing ones.
        model: the model directory.
        options: those of match(), and target_policy, match_policy, ot_cost, ot_epsilon, ot_iters,
            rewrite_order,
            incomplete_rollouts, global_max_length (docs/contract/STAGES.md, docs/targets.md).
        answer_format, resized_px: those of parse().

    Example:
        >>> prompt, answer = prompt_token_ids, response_token_ids                   # doctest: +SKIP
        >>> sequence = rematch.segment(prompt, answer, truth, model="DIR")          # doctest: +SKIP
        >>> sequence["token_ids"], sequence["labels"]                               # doctest: +SKIP
    """
    return _stages.segment(
        os.fspath(model),
        answer_format or "",
        {
            "prompt_token_ids": prompt_token_ids,
            "response_token_ids": response_token_ids,
            "ground_truth": ground_truth,
            "options": dict(options or {}),
            **_given(resized_px=resized_px),
        },
    )


def pack(
    encoded_lens: Sequence[int],
    packing_length: int,
    *,
    packing_selector: Optional[str] = None,
    packing_buffer: Optional[int] = None,
) -> Packed:
    """Chooses which of the waiting segments share the next row; the oldest, at position 0, is
    always among them.

    Args:
        encoded_lens: lengths of the waiting segments, oldest first.
        packing_length: the most tokens of a row.
        packing_selector: "binpacking" (the default) or another of docs/packing.md.
        packing_buffer: the most waiting segments.

    Example:
        >>> rematch.pack([500, 300, 400], 1000)["selected"]
        [0, 2]
    """
    return _stages.pack(
        {
            "encoded_lens": encoded_lens,
            "packing_length": packing_length,
            **_given(packing_selector=packing_selector, packing_buffer=packing_buffer),
        }
    )


def evaluate(
    scenes: Sequence[Scene],
    *,
    label_match: Optional[str] = None,
    match_policy: Optional[str] = None,
    candidate_top_k: Optional[int] = None,
    maskiou_gate: Optional[float] = None,
    maskiou_resolution: Optional[int] = None,
    fp_cost: Optional[float] = None,
    fn_cost: Optional[float] = None,
) -> Dict[str, Any]:
    """Scores answers as `rematch eval` does, under its names: eval_rollout_f1, coco_ap, per_class,
    … (docs/metrics.md).

    COCO's AP and AR rank predictions by their scores. If any prediction has no score, the order of
    the answers is used
    instead, and `coco_ranking` is "order" instead of "score".

    Args:
        scenes: one for each image.
        label_match: "exact", "normalized" (the default) or the path of a file of synonyms.
        match_policy: as custom.extra.rollout_matching.match_policy; the other options are those of
            match().

    Example:
        >>> cup = {"desc": "cup", "bbox_2d": [100, 100, 300, 300]}
        >>> plate = {"desc": "plate", "bbox_2d": [400, 420, 900, 880]}
        >>> size = {"width": 640, "height": 480}
        >>> scene = {"predictions": [cup], "ground_truth": [cup, plate], **size}
        >>> round(rematch.evaluate([scene])["eval_rollout_f1"], 3)
        0.667
    """
    options = _given(
        label_match=label_match,
        match_policy=match_policy,
        candidate_top_k=candidate_top_k,
        maskiou_gate=maskiou_gate,
        maskiou_resolution=maskiou_resolution,
        fp_cost=fp_cost,
        fn_cost=fn_cost,
    )
    return _stages.evaluate({"scenes": scenes, "options": options})
