#!/usr/bin/env python3
"""Runs every command of docs/first_run.md in an empty directory and compares what it prints with
the page.

usage: first_run_check.py REMATCH [--update]     --update rewrites the page's outputs

A block ```console holds a line "$ command" (which a backslash continues) and what it prints (output
and errors together). Numbers may differ, as may what stands for "…" lines; everything else must be
there, in order.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/first_run.md"
BLOCK = re.compile(r"```console\n\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", re.DOTALL)
MOST_LINES = 24


def plain(line):
    """A line without what may differ: numbers and the width of columns."""
    line = re.sub(r"\b1 thread\b", "1 threads", line)  # how many is the machine's affair
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.:e+-]*\*?|(?<=\s)-(?=\s|$)", "#", line)).strip()


def run(command, directory, environment):
    result = subprocess.run(
        ["bash", "-c", command + " 2>&1"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SystemExit(f"$ {command}\nexit code {result.returncode}\n{result.stdout}")
    return result.stdout


def missing_line(expected, actual):
    """The first line of the page that the output does not have in its place, or None."""
    remaining = [plain(line) for line in actual.splitlines()]
    for line in expected.splitlines():
        if line.strip() == "…":
            continue
        if plain(line) not in remaining:
            return line
        del remaining[: remaining.index(plain(line)) + 1]
    return None


def shortened(output):
    lines = [
        line.rstrip() for line in output.splitlines() if not re.match(r"\w+ \d+/\d+ ", line)
    ]  # without progress
    return (
        "\n".join(
            lines if len(lines) <= MOST_LINES else lines[: MOST_LINES - 4] + ["…"] + lines[-3:]
        )
        + "\n"
    )


def main():
    binary, update = Path(sys.argv[1]).resolve(), "--update" in sys.argv
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for part in ("tests", "demo"):
            (directory / part).symlink_to(ROOT / part)
        environment = dict(os.environ, PATH=f"{binary.parent}:{os.environ['PATH']}", NO_COLOR="1")

        def replay(match):
            output = run(match[1], directory, environment)
            line = None if update else missing_line(match[2], output)
            if line is not None:
                raise SystemExit(
                    f"$ {match[1]}\nthe page has this line, the output does not:\n  {line}\nthe "
                    f"output:\n{output}"
                )
            return f"```console\n$ {match[1]}\n{shortened(output)}```"

        updated, count = BLOCK.subn(replay, page)
    if update:
        PAGE.write_text(updated, encoding="utf-8")
    print(f"{count} commands")
    return 0 if count > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
