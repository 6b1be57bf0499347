#!/usr/bin/env python3
"""Writes docs/commands.md from the help of every command.

usage: write_commands.py REMATCH [--check]     --check: compares only; exit 1 and what to run when
the page is old
"""

import pathlib
import re
import subprocess
import sys
import textwrap

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/commands.md"
HEAD = """# Commands

Written by `dev/write_commands.py` from `rematch COMMAND --help`; a test compares it.
"""
COLUMN = 30  # where help pages explain an option
MOST_COLUMNS = 100
COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*)  ", re.MULTILINE)


def help_of(binary, words):
    return subprocess.run(
        [binary, *words, "--help"], check=True, capture_output=True, text=True
    ).stdout.strip()


def commands_in(text):
    _, found, listed = text.partition("\nSubcommands:\n")
    return COMMAND.findall(listed.partition("\n\n")[0]) if found else []


def wrap_help(text):
    """Lines of at most MOST_COLUMNS; explanations keep their column, examples stay as they are."""
    explained, examples, commands = text.partition("\nExamples:\n")
    lines = []
    for line in explained.split("\n"):
        indent = " " * COLUMN if line.startswith(" ") else ""
        lines += textwrap.wrap(
            line,
            MOST_COLUMNS,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines) + examples + commands


def section(binary, words):
    """The help of a command, then that of its subcommands."""
    text = help_of(binary, words)
    heading = f"{'#' * (len(words) + 1)} rematch {' '.join(words)}".rstrip()
    block = "\n".join(line.rstrip() for line in wrap_help(text).splitlines())
    yield f"\n{heading}\n\n```text\n{block}\n```\n" if words else f"\n```text\n{block}\n```\n"
    for name in commands_in(text):
        yield from section(binary, [*words, name])


def main():
    page = HEAD + "".join(section(sys.argv[1], []))
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page:
        print(
            "docs/commands.md is not what the program says; run dev/write_commands.py "
            f"{sys.argv[1]}"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
