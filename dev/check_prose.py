#!/usr/bin/env python3
"""Checks prose: pages have no line over 160 characters, and neither pages nor comments use the
words that made this project read like a dialect, and a comment begins with a noun or a verb.

usage: check_prose.py     exit 0 when all text is clean

Fenced blocks and inline code are not prose, and rows of tables may be long. Pages that other
programs write are left out.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "demo/*.md", "src/README.md")
GENERATED = ("docs/contract/SPEC_TRACE.md", "docs/commands.md", "docs/config.md", "docs/metrics.md")
GIVEN = "docs/contract/openspec/"  # the requirement in its own words
COMMENTED = (
    "src/**/*.h",
    "src/**/*.cc",
    "tests/**/*.h",
    "tests/**/*.cc",
    "bench/*.h",
    "bench/*.cc",
    "fuzz/*.cc",
    "dev/**/*.cc",
)
MOST_CHARACTERS = 160
WORDS = re.compile(
    r"\b(anew|beside|mend(?:s|ed)?|told|dealt|lends|goes on|stands still"
    r"|somebody|nobody|whoever|of (?:its|their) own|likewise|thereby)\b",
    re.IGNORECASE,
)
FENCE = re.compile(r"^\s*(`{3,})[^`]*$")
OPENING = re.compile(r"\s*///? (What|Where|Why|How|Whether|Of) ")
COMMENT = re.compile(r"(?<![:\"])//.*")


def prose_lines(text):
    """(number, line) of what is neither in a fenced block nor in a table."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if mark := FENCE.match(line):
            fence = None if fence and mark[1].startswith(fence) else fence or mark[1]
        elif fence is None:
            yield number, line


def page_breaches(path):
    for number, line in prose_lines(path.read_text(encoding="utf-8")):
        if len(line) > MOST_CHARACTERS and not line.lstrip().startswith("|"):
            yield number, f"{len(line)} characters; {MOST_CHARACTERS} at most"
        for word in WORDS.findall(re.sub(r"`[^`]*`", "", line)):
            yield number, f'"{word}": say it in plain words'


def comment_breaches(path):
    before = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for word in WORDS.findall(" ".join(COMMENT.findall(line))):
            yield number, f'"{word}": say it in plain words'
        if (opening := OPENING.match(line)) and not before.lstrip().startswith("//"):
            yield number, f'"{opening[1]}": begin with a noun or a verb'
        before = line


def main():
    sources = [(PAGES, page_breaches), (COMMENTED, comment_breaches)]
    files = [
        (path, breaches)
        for patterns, breaches in sources
        for path in sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
    ]
    found = [
        (path.relative_to(ROOT).as_posix(), *breach)
        for path, breaches in files
        if path.relative_to(ROOT).as_posix() not in GENERATED
        and not path.relative_to(ROOT).as_posix().startswith(GIVEN)
        for breach in breaches(path)
    ]
    for name, number, reason in found:
        print(f"{name}:{number}: {reason}")
    print(f"{len(files)} files, {len(found)} places to rewrite")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
