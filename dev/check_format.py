#!/usr/bin/env python3
"""Checks that every C++ file is formatted by .clang-format and every Python file by ruff, with the
tools of .venv (scripts/setup pins their versions), and that no line of any text is wider than 100
columns.

usage: check_format.py [--fix] [FILE …]     no FILE: all files that git knows

A wider line is fine in data, in pages that a program writes and in the specification (DATA), and
where nothing can be wrapped: a table, a heading or a line of code in Markdown, a template of Jinja,
a word of more than 60 characters such as an address.

Exit 1 and the names of unformatted files and the places of wide lines; 77 ("skipped: …") without
the tools.
"""

import argparse
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / ".venv/bin/clang-format"
RUFF = ROOT / ".venv/bin/ruff"
WIDTH = 100
# Files whose lines are values, or are as another program wrote them.
DATA = re.compile(
    r"^(tests/golden|fuzz/seeds|docs/contract/openspec)/|\.(jsonl?|svg|ipynb|txt|patch)$|^LICENSE$"
    r"|^docs/(config|commands|metrics|contract/SPEC_TRACE)\.md$|^dev/goldens/text_jinja\.py$"
)
UNBREAKABLE = re.compile(r"\{%|\S{61}")
BATCH = 32


def unformatted(batch, fix):
    """Names of files in `batch` that are not formatted; with `fix` they are rewritten."""
    run = subprocess.run(
        [TOOL, "-i" if fix else "--dry-run", *batch], capture_output=True, text=True
    )
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    return {
        line.split(":", 1)[0]
        for line in run.stderr.splitlines()
        if "[-Wclang-format-violations]" in line
    }


def unformatted_python(files, fix):
    """Names of Python files that are not formatted; with `fix` they are rewritten."""
    command = [RUFF, "format", "--quiet", *([] if fix else ["--check"]), *files]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode == 0:
        return set()
    listed = subprocess.run(
        [RUFF, "format", "--check", "--output-format", "concise", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    marks = re.compile(r"(.+?):\d+:\d+: unformatted")
    names = {found[1] for found in map(marks.match, listed.stdout.splitlines()) if found}
    return names or {run.stderr.strip()}


def wide_lines(path, name):
    """Places of lines of a file that are wider than WIDTH though they could be wrapped."""
    if DATA.search(name) and path.name != "CMakeLists.txt":
        return
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        return
    is_code = False
    for number, line in enumerate(lines, 1):
        if path.suffix == ".md":
            is_code ^= line.lstrip().startswith("```")
            if is_code or line.lstrip().startswith(("|", "#")):
                continue
        if len(line) > WIDTH and not UNBREAKABLE.search(line):
            yield f"{name}:{number}: {len(line)} columns, {WIDTH} at most"


def is_python(path):
    if path.suffix:
        return path.suffix == ".py"
    with open(path, "rb") as file:
        return re.match(rb"#!.*python", file.readline()) is not None


def files_of_repository():
    run = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = (ROOT / name for name in run.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if not TOOL.exists() or not RUFF.exists():
        print("skipped: no clang-format or ruff in .venv (scripts/setup installs them)")
        return 77
    files = [path.resolve() for path in arguments.files] or files_of_repository()
    scripts = [path for path in files if is_python(path)]
    sources = [path for path in files if path.suffix in (".h", ".cc", ".c")]
    batches = [sources[i : i + BATCH] for i in range(0, len(sources), BATCH)]
    with ThreadPoolExecutor(2) as pool:
        bad = sorted(
            set().union(*pool.map(lambda batch: unformatted(batch, arguments.fix), batches))
        )
    bad += sorted(unformatted_python(scripts, arguments.fix)) if scripts else []
    for name in bad:
        print(f"{name}: not formatted; run dev/check_format.py --fix")
    wide = [
        place for path in files for place in wide_lines(path, path.relative_to(ROOT).as_posix())
    ]
    print(*wide, sep="\n", end="\n" if wide else "")
    print(f"{len(files)} files, {len(bad)} not formatted, {len(wide)} lines too wide")
    return 1 if bad or wide else 0


if __name__ == "__main__":
    sys.exit(main())
