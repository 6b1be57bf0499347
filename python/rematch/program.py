"""Runs the program as a child process, which Ctrl-C asks to save."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, IO, List, Mapping, Optional, Tuple

from rematch.errors import from_program, problem
from rematch.installed import PROGRAM, check_torch, environment

_POLL_S = 0.2
_WARNING = "warning: "


@dataclass
class Output:
    """What a command left: its exit code (negative: a signal), both streams and its events."""

    code: int
    stdout: str
    stderr: str
    events: Dict[str, str]  # name: path, as the program sends them (base/observe/event.h)

    @property
    def warnings(self) -> List[str]:
        """The program's warnings, some of several lines, without the word before them."""
        texts: List[str] = []
        goes_on = False
        for line in self.stderr.split("\n"):
            goes_on = is_of_warning(line, goes_on)
            if line.startswith(_WARNING):
                texts.append(line[len(_WARNING) :])
            elif goes_on:
                texts[-1] += "\n" + line
        return texts


def is_of_warning(line: str, follows_one: bool) -> bool:
    """True for the first line of a warning, and for the indented lines after it.

    Args:
        follows_one: this was true for the line before.
    """
    return line.startswith(_WARNING) or (follows_one and line.startswith("  "))


def options(given: Mapping[str, Any]) -> List[str]:
    """`--name=value` for each; True gives `--name`; None and False give nothing."""
    named = (
        (name, value) for name, value in given.items() if value is not None and value is not False
    )
    return [
        name
        if value is True
        else f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}"
        for name, value in named
    ]


def settings_options(settings: Optional[Mapping[str, Any]]) -> List[str]:
    """`--set key=value` for each key, the value as JSON, which YAML reads as it is; paths as texts,
    and numpy's numbers and arrays as Python's.
    """

    def plain(value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value.tolist()

    arguments: List[str] = []
    for key, value in (settings or {}).items():
        try:
            text = json.dumps(value, ensure_ascii=False, default=plain)
        except (AttributeError, TypeError):
            raise problem(
                "config",
                "a setting has a value that YAML does not have",
                key,
                repr(value),
                "give a number, a text, True, False, None, a path, or a list or dict of them",
            ) from None
        arguments += ["--set", f"{key}={text}"]
    return arguments


def run(
    command: str,
    arguments: List[str],
    *,
    said: Callable[[str], None] = lambda line: None,
    told: Callable[[str, str], None] = lambda event, path: None,
    tick: Callable[[], None] = lambda: None,
) -> Output:
    """Runs `rematch COMMAND ARGUMENTS` to its end.

    Ctrl-C, and whatever `said` or `tick` raises, sends it SIGINT once: a training saves and ends.
    The exception is raised again when the program has ended; `said` has then taken its last lines
    too, unless it raised the exception. A second Ctrl-C stops the program at once.

    Args:
        said: takes each line of standard error as it comes, and "" when none comes.
        told: takes the name and the path of each event.
        tick: is called several times a second, and once after the end.
    """
    check_torch()
    starter = str(PROGRAM.parents[1] / "start.py")
    child = subprocess.Popen(
        # -I -S: nothing is imported from the current directory, PYTHONPATH or site-packages.
        [sys.executable, "-I", "-S", starter, str(os.getpid()), str(PROGRAM), command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # A terminal and Jupyter send Ctrl-C to the whole group; the program takes a second one for
        # an order to stop without saving.
        start_new_session=True,
        env={**environment(), "NO_COLOR": "1", "REMATCH_EVENTS": "1"},
    )
    streams = _Streams(child)
    events: Dict[str, str] = {}

    def take_line() -> None:
        line = streams.next_line() or ""
        if event := _event(line):
            events.update([event])
            told(*event)
        else:
            said(line)

    try:
        while streams.are_open:
            take_line()
            tick()
        child.wait()
        tick()
    except BaseException as stop:
        _end(child)
        while isinstance(stop, KeyboardInterrupt) and streams.are_open:
            take_line()
        raise
    finally:
        streams.close()
    return Output(child.returncode, *streams.texts(), events)


def run_checked(command: str, arguments: List[str], **callbacks: Any) -> Output:
    """run(); its warnings become Python's.

    Raises:
        rematch.Error: the program ended with an error
    """
    done = run(command, arguments, **callbacks)
    warn(done.warnings)
    if done.code != 0:
        raise from_program(f"rematch {command}", done.code, done.stderr)
    return done


def warn(texts: List[str]) -> None:
    """Python warnings that name the first caller outside this package."""
    depth, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("rematch."):
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    for text in texts:
        warnings.warn(text, stacklevel=depth)


def _event(line: str) -> Optional[Tuple[str, str]]:
    """The name and the path of an event; None for any other line."""
    if not line.startswith('{"event":'):
        return None
    found = json.loads(line)
    return found["event"], found["path"]


def _end(child: "subprocess.Popen[str]") -> None:
    """Asks the program to save and end, and waits; another Ctrl-C asks it to stop at once."""
    for _ in range(2):
        child.send_signal(signal.SIGINT)
        try:
            child.wait()
            return
        except KeyboardInterrupt:
            pass
    child.kill()
    child.wait()


class _Streams:
    """Both streams of a child, read by threads, so that neither fills its pipe."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._lines: "queue.SimpleQueue[Optional[str]]" = queue.SimpleQueue()
        self._texts: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        assert child.stdout is not None and child.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("stdout", child.stdout), ("stderr", child.stderr))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def are_open(self) -> bool:
        return any(reader.is_alive() for reader in self._readers) or not self._lines.empty()

    def next_line(self) -> Optional[str]:
        """The next line of standard error; None when none comes for a moment."""
        try:
            return self._lines.get(timeout=_POLL_S)
        except queue.Empty:
            return None

    def close(self) -> None:
        for reader in self._readers:
            reader.join()

    def texts(self) -> Tuple[str, str]:
        return "".join(self._texts["stdout"]), "".join(self._texts["stderr"])

    def _read(self, name: str, stream: "IO[str]") -> None:
        with stream:
            for line in stream:
                if name == "stdout" or _event(line) is None:
                    self._texts[name].append(line)
                if name == "stderr":
                    self._lines.put(line.rstrip("\n"))
        if name == "stderr":
            self._lines.put(None)  # wakes the loop
