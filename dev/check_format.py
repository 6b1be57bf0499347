#!/usr/bin/env python3
"""Checks that every C++ file is formatted by .clang-format, with the clang-format of .venv (scripts/setup pins its version).

usage: check_format.py [--fix] [FILE …]     no FILE: src/, tests/, bench/ and fuzz/

Exit 1 and the names of unformatted files; 77 ("skipped: …") without clang-format.
"""
import argparse
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / ".venv/bin/clang-format"
FOLDERS = ("src", "tests", "bench", "fuzz", "dev")
BATCH = 32


def unformatted(batch, fix):
    """Names of files in `batch` that are not formatted; with `fix` they are rewritten."""
    run = subprocess.run([TOOL, "-i" if fix else "--dry-run", *batch], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    return {line.split(":", 1)[0] for line in run.stderr.splitlines() if "[-Wclang-format-violations]" in line}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if not TOOL.exists():
        print("skipped: no clang-format in .venv (scripts/setup installs it)")
        return 77
    files = arguments.files or sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc"))
    batches = [files[i:i + BATCH] for i in range(0, len(files), BATCH)]
    with ThreadPoolExecutor(2) as pool:
        bad = sorted(set().union(*pool.map(lambda batch: unformatted(batch, arguments.fix), batches)))
    for name in bad:
        print(f"{name}: not formatted; run dev/check_format.py --fix")
    print(f"{len(files)} files, {len(bad)} not formatted")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
