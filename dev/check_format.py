#!/usr/bin/env python3
"""Checks that every C++ file is formatted by .clang-format and every Python file by ruff, with the
tools of .venv (scripts/setup pins their versions).

usage: check_format.py [--fix] [FILE …]     no FILE: all of the repository

Exit 1 and the names of unformatted files; 77 ("skipped: …") without the tools.
"""

import argparse
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / ".venv/bin/clang-format"
RUFF = ROOT / ".venv/bin/ruff"
FOLDERS = ("src", "tests", "bench", "fuzz", "dev", "demo", "python", "scripts")
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
        [RUFF, "format", "--check", *files], cwd=ROOT, capture_output=True, text=True
    )
    marks = "Would reformat: "
    names = {line[len(marks) :] for line in listed.stdout.splitlines() if line.startswith(marks)}
    return names or {run.stderr.strip()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if not TOOL.exists() or not RUFF.exists():
        print("skipped: no clang-format or ruff in .venv (scripts/setup installs them)")
        return 77
    files = arguments.files or sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cc", ".py")
    )
    scripts = [path for path in files if path.suffix == ".py"]
    sources = [path for path in files if path.suffix != ".py"]
    batches = [sources[i : i + BATCH] for i in range(0, len(sources), BATCH)]
    with ThreadPoolExecutor(2) as pool:
        bad = sorted(
            set().union(*pool.map(lambda batch: unformatted(batch, arguments.fix), batches))
        )
    bad += sorted(unformatted_python(scripts, arguments.fix)) if scripts else []
    for name in bad:
        print(f"{name}: not formatted; run dev/check_format.py --fix")
    print(f"{len(files)} files, {len(bad)} not formatted")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
