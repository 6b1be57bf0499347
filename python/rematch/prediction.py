"""Finds objects in images with the program."""

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, TypedDict, Union

from rematch.errors import from_program, problem
from rematch.pictures import upright
from rematch.program import options, run, warn

if TYPE_CHECKING:
    import PIL.Image

Image = Union[str, "os.PathLike[str]", "PIL.Image.Image"]
"""The path of an image or of a directory of images, or a picture of Pillow."""


class FoundObject(TypedDict, total=False):
    """An object in an answer; it has exactly one of bbox_2d and poly."""

    desc: str
    bbox_2d: List[int]  # x1, y1, x2, y2 in thousandths of the image's sides
    poly: List[int]  # x, y of each vertex, in the same unit
    box_px: List[float]  # left, top, right, bottom in pixels
    score: float  # 0..1; absent when the backend gives no probabilities


class Prediction(TypedDict, total=False):
    """The answer to an image. An unreadable image has only image, objects (empty), status and
    error.
    """

    image: str  # its path; "" for a picture of Pillow
    width: int
    height: int
    objects: List[FoundObject]
    status: str  # "complete", "truncated", "malformed" or "unreadable"
    dropped_invalid: int
    text: str  # the answer as the model wrote it
    error: str


def predict(
    model: Union[str, "os.PathLike[str]"],
    images: Union[Image, Sequence[Image]],
    *,
    adapter: Optional[Union[str, "os.PathLike[str]"]] = None,
    min_score: float = 0.0,
    system: Optional[str] = None,
    user: Optional[str] = None,
    answer_format: Optional[str] = None,
    max_new_tokens: Optional[int] = None,
    backend: Optional[str] = None,
    device: Optional[str] = None,
) -> List[Prediction]:
    """Finds the objects in images with a trained model: `rematch predict` (docs/serve.md), which
    loads the model once for all images.

    An unreadable image does not affect the others; its `status` is "unreadable". Any other problem
    raises rematch.Error. Warnings of the
    program become Python warnings.

    Args:
        model: a checkpoint, or an adapter with its base model still in place.
        images: one image, or several: paths of images or of directories, pictures of Pillow. Photos
            stored rotated (EXIF) are turned upright.
        adapter: a PEFT adapter on top of `model`.
        min_score: objects below it are left out.
        system, user: prompts; None or empty: those stored with the checkpoint.
        answer_format: how answers are written; None: as stored with the checkpoint.
        max_new_tokens: the longest answer; None: as stored with the checkpoint.
        backend: "native" (the default) or "hf".
        device: "auto" (the default), "cpu", "cuda" or "cuda:N".

    Example:
        >>> run = "output/run/checkpoint-200"
        >>> found = rematch.predict(run, ["a.jpg"], min_score=0.1)         # doctest: +SKIP
        >>> [(one["desc"], one["box_px"]) for one in found[0]["objects"]]  # doctest: +SKIP
        >>> rematch.show("a.jpg", found[0]["objects"])                     # doctest: +SKIP
    """
    arguments = options(
        {
            "--adapter": adapter,
            "--min-score": min_score,
            "--system": system or None,
            "--user": user or None,
            "--answer-format": answer_format,
            "--max-new-tokens": max_new_tokens,
            "--backend": backend,
            "--device": device,
        }
    )
    given = (
        [images]
        if isinstance(images, (str, os.PathLike)) or hasattr(images, "save")
        else list(images)
    )
    if not given:
        return []
    with tempfile.TemporaryDirectory(prefix="rematch_") as directory:
        paths = [
            _path(image, Path(directory) / f"{i}.png", f"images[{i}]")
            for i, image in enumerate(given)
        ]
        lines = _run([*arguments, "--", os.fspath(model), *paths])
        for line in lines:
            if Path(line["image"]).parent == Path(directory):
                line["image"] = ""
    return lines


def _path(image: Any, copy: Path, place: str) -> str:
    """The path of an image; a picture is first written to `copy`."""
    if hasattr(image, "save"):
        try:
            upright(image).save(copy)
        except (AttributeError, OSError, ValueError) as error:  # no pixels, a damaged file, no disk
            raise problem(
                "data",
                "this picture cannot be saved for the program",
                place,
                str(error),
                "give a picture that Pillow can save as PNG, or the path of its file",
            ) from None
        return str(copy)
    if isinstance(image, (str, os.PathLike)):
        return os.fspath(image)
    raise problem(
        "data",
        "this is neither a path nor a picture",
        place,
        f"it is of type {type(image).__name__}",
        "give a path or a PIL.Image; PIL.Image.fromarray() makes one of an array",
    )


def _run(arguments: List[str]) -> List[Prediction]:
    """The lines that `rematch predict` prints."""
    try:
        done = run("predict", arguments)
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        raise problem(
            "data",
            "these are too many images for one command",
            f"{len(arguments)} arguments",
            os.strerror(errno.E2BIG),
            "give the directory that holds them, or fewer at a time",
        ) from None
    warn(done.warnings)
    # Not splitlines(): texts may contain other line separators. Text after the last newline is an
    # incomplete line.
    lines: List[Prediction] = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    if done.code != 0:
        raised = from_program("rematch predict", done.code, done.stderr)
        unreadable = {line["error"] for line in lines if line["status"] == "unreadable"}
        if any(f"{one['error']}: {one['what']}" not in unreadable for one in raised.problems):
            raise raised
    return lines
