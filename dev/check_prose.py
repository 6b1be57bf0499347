#!/usr/bin/env python3
"""Checks the text of the pages: no line of prose over 160 characters, and none of the words that make this project read like a dialect.

usage: check_prose.py [--src]     exit 0 when the pages are clean; --src lists the words in comments of src/ instead, for a later pass

Fenced blocks and inline code are not prose, and rows of tables may be long. Pages that other programs write are left out.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "demo/*.md", "src/README.md")
GENERATED = ("docs/SPEC_TRACE.md", "docs/commands.md", "docs/config.md", "docs/metrics.md")
MOST_CHARACTERS = 160
WORDS = re.compile(r"\b(anew|beside|mend(?:s|ed)?|told|dealt|lends|goes on|stands still|nobody|whoever|whose|of (?:its|their) own|likewise|thereby)\b",
                   re.IGNORECASE)
FENCE = re.compile(r"^\s*(`{3,})[^`]*$")
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
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for word in WORDS.findall(" ".join(COMMENT.findall(line))):
            yield number, f'"{word}"'


def main():
    if "--src" in sys.argv:
        files, breaches = sorted((ROOT / "src").rglob("*.h")) + sorted((ROOT / "src").rglob("*.cc")), comment_breaches
    else:
        files, breaches = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}), page_breaches
    found = [(path.relative_to(ROOT).as_posix(), *breach) for path in files if path.relative_to(ROOT).as_posix() not in GENERATED
             for breach in breaches(path)]
    for name, number, reason in found:
        print(f"{name}:{number}: {reason}")
    print(f"{len(files)} files, {len(found)} places to rewrite")
    return 1 if found and "--src" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
