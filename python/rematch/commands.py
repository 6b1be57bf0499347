"""The commands around a training: init, eval, probe, report and merge."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from rematch.errors import problem
from rematch.program import options, run_checked, settings_options
from rematch.results import Configuration, Page, Scores, Written

Place = Union[str, "os.PathLike[str]"]
"""A path, or what a function of this package wrote."""


def init(
    model: Place,
    records: Place,
    *,
    val: Optional[Place] = None,
    out: Place = "rematch.yaml",
    stage: Optional[int] = None,
) -> Configuration:
    """Writes a commented configuration for a model and data: `rematch init`.

    Args:
        model: a Hugging Face directory, or a run (its best checkpoint).
        records: the JSONL to train on.
        val: the JSONL to evaluate on.
        out: the YAML; one that is there already is not replaced.
        stage: 1 or 2; None: 2 for a checkpoint that can answer, else 1.

    Example:
        >>> config = rematch.init("base", "data/train.jsonl", stage=1)        # doctest: +SKIP
        >>> rematch.train(config)                                             # doctest: +SKIP
    """
    if stage not in (None, 1, 2):
        raise problem("config", "there is no such stage", "stage", repr(stage), "give 1 or 2")
    given = options({"--val": val, "--out": out, "--stage1": stage == 1, "--stage2": stage == 2})
    done = run_checked("init", [*given, "--", os.fspath(model), os.fspath(records)])
    return Configuration(Path(out), done.stdout)


def eval(
    model: Place,
    records: Optional[Place] = None,
    *,
    settings: Optional[Mapping[str, Any]] = None,
    answer_format: Optional[str] = None,
    device: Optional[str] = None,
) -> Scores:
    """Scores a model's answers: `rematch eval`.

    Args:
        model: a configuration, a checkpoint, an adapter, or a run (its best checkpoint).
        records: the JSONL to ask about; None: custom.val_jsonl of the configuration or run.
        settings: keys of docs/config.md with their values.
        answer_format: how answers are written; None: as stored with the checkpoint.
        device: "auto" (the default), "cpu", "cuda" or "cuda:N".

    Returns:
        eval_rollout_f1_iou50, coco_ap, per_class, … (docs/metrics.md).

    Example:
        >>> scores = rematch.eval("output/run", "data/val.jsonl")             # doctest: +SKIP
        >>> scores["eval_rollout_f1_iou50"]                                   # doctest: +SKIP
    """
    given = options({"--answer-format": answer_format, "--device": device})
    done = run_checked("eval", _scored(model, records, settings, given))
    return Scores(json.loads(Path(done.events["scores"]).read_bytes()), done.stdout)


def probe(
    model: Place,
    records: Optional[Place] = None,
    *,
    samples: Optional[int] = None,
    settings: Optional[Mapping[str, Any]] = None,
    answer_format: Optional[str] = None,
    device: Optional[str] = None,
) -> Scores:
    """Measures whether stage 2 can help a checkpoint, and says what to do: `rematch probe`.

    Args:
        samples: sampled answers for each image whose greedy answer misses an object (8).
        model, records, settings, answer_format, device: those of rematch.eval().

    Returns:
        measured, by_object_count, and verdict with action, headline, reasons and steps
        (docs/probe.md).

    Example:
        >>> probed = rematch.probe("stage2.yaml")                             # doctest: +SKIP
        >>> probed["verdict"]["headline"]                                     # doctest: +SKIP
    """
    given = options({"--samples": samples, "--answer-format": answer_format, "--device": device})
    done = run_checked("probe", [*_scored(model, records, settings, given), "--json"])
    found = json.loads(done.stdout)
    return Scores(found, _probe_text(found))


def report(runs: Union[Place, Sequence[Place]], *, out: Place = "report.html") -> Page:
    """Writes one page about runs: scores, curves, time, pictures: `rematch report`.

    Args:
        runs: one or several run directories or result files, "before" first and "after" last.
        out: the page.

    Example:
        >>> rematch.report(["output/before", "output/run"])                   # doctest: +SKIP
    """
    places = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    done = run_checked("report", [*options({"--out": out}), "--", *map(os.fspath, places)])
    return Page(Path(out), done.stdout)


def merge(
    adapter: Place, out: Place, *, model: Optional[Place] = None, dtype: Optional[str] = None
) -> Written:
    """Merges a LoRA or DoRA adapter into its base model: `rematch merge`.

    Args:
        adapter: a PEFT directory, or a run that trained one (its best checkpoint).
        out: the directory of the full checkpoint.
        model: the base model; None: the one that the adapter names.
        dtype: "float32" or "bfloat16"; None: that of the base model's weights.

    Example:
        >>> merged = rematch.merge("output/lora", "merged")                   # doctest: +SKIP
        >>> rematch.predict(merged, ["a.jpg"])                                # doctest: +SKIP
    """
    given = options({"--out": out, "--model": model, "--dtype": dtype})
    done = run_checked("merge", [*given, "--", os.fspath(adapter)])
    return Written(Path(out), done.stdout or done.stderr)


def _scored(
    model: Place, records: Optional[Place], settings: Optional[Mapping[str, Any]], given: List[str]
) -> List[str]:
    """The arguments of eval and probe."""
    places = [os.fspath(place) for place in (model, records) if place is not None]
    return [*given, *settings_options(settings), *places]


def _probe_text(found: Dict[str, Any]) -> str:
    measured = [
        f"{name:22}{'-' if value is None else format(value, '.3f')}"
        for name, value in found["measured"].items()
    ]
    return "\n".join([*measured, "", f"verdict: {found['verdict']['headline']}"])
