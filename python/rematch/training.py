"""Trains with the program, and follows the run."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from rematch.curves import page_of_run
from rematch.errors import problem
from rematch.log_follower import LogFollower
from rematch.logs import Log, read_log
from rematch.program import is_of_warning, options, run_checked, settings_options

Row = Dict[str, Any]
"""A line of logging.jsonl: `step`, and loss, … or eval_loss, … (docs/metrics.md)."""


@dataclass(frozen=True, repr=False)
class Run:
    """A training that has ended. A notebook shows its scores and curves.

    Attributes:
        directory: training.output_dir/run_name.
        log: what it logged (rematch.read_log).
    """

    directory: Path
    log: Log

    @property
    def best(self) -> Optional[Path]:
        """The best checkpoint that is there; None when none was saved."""
        return self._checkpoint("best")

    @property
    def last(self) -> Optional[Path]:
        """The newest checkpoint; None when none was saved."""
        return self._checkpoint("last")

    def __fspath__(self) -> str:
        return os.fspath(self.directory)

    def __repr__(self) -> str:
        best = self.best
        return f"Run({os.fspath(self.directory)!r}, best={best.name if best else None!r})"

    def _repr_html_(self) -> str:
        return page_of_run(self.log, os.fspath(self.directory))

    def _checkpoint(self, name: str) -> Optional[Path]:
        link = self.directory / name
        return self.directory / os.readlink(link) if link.is_symlink() else None


def train(
    config: Union[str, "os.PathLike[str]"],
    callback: Optional[Callable[[Row], None]] = None,
    *,
    settings: Optional[Mapping[str, Any]] = None,
    resume: bool = False,
    device: Optional[str] = None,
) -> Run:
    """Trains stage 1 or stage 2: `rematch train`, which prints its progress here.

    Ctrl-C (in a notebook: interrupt the kernel) saves the run; KeyboardInterrupt comes when it
    has ended, and resume=True continues the run. What `callback` raises ends the run in the same
    way.

    Args:
        config: a YAML, as rematch.init writes it.
        callback: takes each line of logging.jsonl as soon as it is written, in place of the printed
            progress; rematch.live_plot() makes one that draws.
        settings: keys of docs/config.md with their values, before those of the YAML.
        resume: continues from the newest checkpoint of the run directory.
        device: "auto" (the default), "cpu", "cuda" or "cuda:N".

    Example:
        >>> steps = {"training.max_steps": 200}                               # doctest: +SKIP
        >>> run = rematch.train("rematch.yaml", print, settings=steps)        # doctest: +SKIP
        >>> run.best, run.log.steps[-1]["loss"]                               # doctest: +SKIP
        >>> rematch.predict(run, ["a.jpg"])                                   # doctest: +SKIP
    """
    if callback is not None and not callable(callback):
        raise problem(
            "config",
            "the callback cannot be called",
            "rematch.train(config, callback)",
            f"it is a {type(callback).__name__}",
            "give settings by name: rematch.train(config, settings={…})",
        )
    watch = _Watch(callback)
    arguments = [
        *options({"--resume": resume, "--device": device}),
        *settings_options(settings),
        os.fspath(config),
    ]
    try:
        run_checked("train", arguments, said=watch.hear, told=watch.follow, tick=watch.look)
    except KeyboardInterrupt:
        if not watch.can_continue():
            raise KeyboardInterrupt(watch.last_words()) from None
        chosen = watch.name_of_run()
        given = f", settings={{…, 'training.run_name': {chosen!r}}}" if chosen else ", …"
        again = f"continue with: rematch.train({os.fspath(config)!r}{given}, resume=True)"
        raise KeyboardInterrupt(f"{watch.last_words()}; {again}") from None
    return Run(watch.directory, read_log(watch.directory))


class _Watch:
    """Prints what the program says, or hands on the lines of the run's log."""

    def __init__(self, callback: Optional[Callable[[Row], None]]) -> None:
        self.directory = Path()
        self._callback = callback
        self._follower: Optional[LogFollower] = None
        self._lines: List[str] = []
        self._has_failed = False
        self._warns = False

    def hear(self, line: str) -> None:
        self._has_failed = self._has_failed or line.startswith("error: ")
        if not line:
            return
        self._warns = is_of_warning(line, self._warns)
        if self._has_failed or self._warns:
            return  # an exception and warnings say these
        self._lines.append(line)
        if self._callback is None:
            print(line, flush=True)

    def follow(self, event: str, path: str) -> None:
        if event == "run":
            self.directory = Path(path)
            self._follower = LogFollower(self.directory)

    def look(self) -> None:
        if self._callback is not None and self._follower is not None:
            for row in self._follower.new_rows():
                self._callback(row)

    def name_of_run(self) -> str:
        """The name that a new run got because its own was taken, or ""."""
        is_new = any(" holds a run, which stays " in line for line in self._lines)
        return self.directory.name if is_new else ""

    def can_continue(self) -> bool:
        """False if an interrupted run has kept nothing to resume from."""
        return any(line.startswith("continue with: ") for line in self._lines)

    def last_words(self) -> str:
        """What an interrupted run saved last."""
        kept = [line for line in self._lines if line.startswith("saved ")]
        return kept[-1] if kept else "the run had saved nothing"
