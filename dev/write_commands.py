#!/usr/bin/env python3
"""Writes docs/commands.md from the help of every command.

usage: write_commands.py REMATCH [--check]     --check: compares only; exit 1 and what to run when
the page is old
"""

import collections
import pathlib
import re
import subprocess
import sys
import textwrap

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/commands.md"
HEAD = """# Commands

Written by `dev/write_commands.py` from `rematch COMMAND --help`; a test compares it. Arguments that
several commands share are explained once, [at the end](#shared-arguments); `--help` has more
examples.
"""
SHARED = "\n## Shared arguments\n"
COLUMN = 30  # where help pages explain an option
MOST_COLUMNS = 100
COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*)  ", re.MULTILINE)
BLOCKS = ("Positionals:", "Options:")
ENTRY = re.compile(r"^  \S.*\n?(?: {3,}.*\n?)*", re.MULTILINE)


def help_of(binary, words):
    return subprocess.run(
        [binary, *words, "--help"], check=True, capture_output=True, text=True
    ).stdout.strip()


def commands_in(text):
    _, found, listed = text.partition("\nSubcommands:\n")
    return COMMAND.findall(listed.partition("\n\n")[0]) if found else []


def wrap_help(text):
    """Lines of at most MOST_COLUMNS; explanations keep their column. The usage and the first of the
    examples become a line each.
    """
    text = re.sub(r"^Usage: (.*?) \[OPTIONS\]", r"\1", text, flags=re.MULTILINE)
    explained, found, commands = text.partition("\nExamples:\n")
    example = f"\nExample: {commands.strip().splitlines()[0].strip()}" if found else ""
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
    return "\n".join(lines) + example


def block_of(text, heading):
    """What precedes a block of a help page, its entries without --help, and what follows it."""
    before, found, rest = text.partition(f"\n{heading}\n")
    listed, _, after = rest.partition("\n\n")
    entries = [entry.rstrip() for entry in ENTRY.findall(listed)]
    return before, [entry for entry in entries if not entry.startswith("  -h,")], found and after


def arguments_of(text):
    return [entry for heading in BLOCKS for entry in block_of(text, heading)[1]]


def pages_of(binary, words):
    """(words, help) of a command, then of its subcommands."""
    text = help_of(binary, words)
    yield words, text
    for name in commands_in(text):
        yield from pages_of(binary, [*words, name])


def name_of(entry):
    return entry.split()[0]


def without_list(text):
    """A help page without its list of commands, which follow as sections."""
    before, found, rest = text.partition("\nSubcommands:\n")
    return before + rest.partition("\n\n")[1] + rest.partition("\n\n")[2] if found else text


def without_shared(text, shared):
    """A help page whose shared options are only named; its usage names the positionals."""
    for heading in BLOCKS:
        before, entries, after = block_of(text, heading)
        if not entries and f"\n{heading}\n" not in text:
            continue
        own = [entry for entry in entries if entry not in shared]
        named = [name_of(entry) for entry in entries if entry in shared]
        parts = [before.strip("\n"), "\n".join([heading, *own]) if own else ""]
        if named and heading == "Options:":
            parts.append(f"Shared options: {' '.join(named)}")
        text = "\n\n".join(part for part in [*parts, after.strip("\n")] if part)
    return text


def block(text):
    lines = "\n".join(line.rstrip() for line in wrap_help(text).splitlines())
    return f"\n```text\n{lines}\n```\n"


def page_of(pages):
    """One explanation a name is shared, the most frequent; others stay with their command."""
    counts = collections.Counter(e for words, text in pages if words for e in arguments_of(text))
    best = {}
    for entry, count in counts.items():
        if count > max(1, counts[best.get(name_of(entry), "")]):
            best[name_of(entry)] = entry
    shared = list(best.values())
    page = HEAD
    for words, text in pages:
        if words:
            page += f"\n{'#' * (len(words) + 1)} rematch {' '.join(words)}\n"
        page += block(without_shared(without_list(text), shared))
    return page + SHARED + block("\n".join(shared))


def main():
    page = page_of(list(pages_of(sys.argv[1], [])))
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
