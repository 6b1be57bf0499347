"""The log of a run as lists of dicts."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Union

from rematch.errors import problem


@dataclass(frozen=True)
class Log:
    """Entries of a run's log, in the order of the file.

    Attributes:
        steps: logged training steps: step, loss, learning_rate, time/step_s, … (docs/metrics.md).
        evaluations: evaluations during training: step, eval_rollout_f1, eval_loss, …; eval_set
        names the evaluated set.
    """

    steps: List[Dict[str, Any]]
    evaluations: List[Dict[str, Any]]


def read_log(run: Union[str, "os.PathLike[str]"]) -> Log:
    """Reads logging.jsonl of a run. Steps and evaluations have different columns, so they are two
    lists.

    Ignores a torn last line of a killed run. If a run was started again in the same directory, its
    later entries follow the earlier ones. Scores of evaluations with different `eval_set` cannot be
    compared.

    Args:
        run: the run's directory (training.output_dir/run_name), or its logging.jsonl.

    Example:
        >>> log = rematch.read_log("output/run")                              # doctest: +SKIP
        >>> [(row["step"], row["loss"]) for row in log.steps]                 # doctest: +SKIP
        >>> pandas.DataFrame(log.evaluations).plot("step", "eval_rollout_f1")  # doctest: +SKIP
    """
    path = Path(run)
    if path.is_dir():
        path /= "logging.jsonl"
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise problem(
            "environment",
            "this run has no readable log",
            str(path),
            error.strerror or str(error),
            "give a run's directory (training.output_dir/run_name) or its logging.jsonl",
        ) from None
    log = Log([], [])
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.strip() else {}
        except ValueError as error:
            if not any(later.strip() for later in lines[number:]):
                break
            raise problem(
                "data",
                "a line of this log cannot be read",
                f"{path}:{number}",
                str(error),
                "remove this line, the others can be read without it",
            ) from None
        add_row(log, row)
    return log


def add_row(log: Log, row: Any) -> None:
    """Adds a line to the list that it belongs to; leaves out what is no line of a log."""
    if isinstance(row, dict) and isinstance(row.get("step"), int):
        is_evaluation = any(key.startswith("eval_") for key in row)
        (log.evaluations if is_evaluation else log.steps).append(row)
