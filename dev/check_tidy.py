#!/usr/bin/env python3
"""Runs clang-tidy (of .venv, version pinned by scripts/setup --checks) over the torch-free sources, with the checks of .clang-tidy.

usage: check_tidy.py [--build DIR] [FILE …]     DIR holds compile_commands.json (default build/light); FILE: only these sources

Torch-free are sources that compile without torch's headers: with those a file takes half a minute. Exit 1 when a check finds something; 77
("skipped: …") without clang-tidy or compile_commands.json. Files that passed are remembered in DIR/tidy by a hash of their text and of all
headers, so that a second run looks only at what changed.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / ".venv/bin/clang-tidy"
# Flags of GCC that clang does not know; its precompiled headers, which clang cannot read, are dropped from the commands.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]


# clang-tidy's clang has no header of OpenMP.
SKIPPED = {ROOT / "src/kernels/team_openmp.cc"}


def commands(build):
    """source file → its compile command, for the torch-free sources of src/."""
    entries = json.loads((build / "compile_commands.json").read_text())
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(ROOT / "src") and path not in SKIPPED and "pch" not in path.name and "torch/include" not in entry["command"]:
            found[path] = entry
    return found


def write_database(entries, folder):
    folder.mkdir(parents=True, exist_ok=True)
    cleaned = []
    for entry in entries:
        words = entry["command"].split()
        while "-include" in words:
            at = words.index("-include")
            del words[at:at + 2]
        words = [word for word in words if word not in ("-Winvalid-pch", "-Werror")]
        cleaned.append({**entry, "command": " ".join(words)})
    (folder / "compile_commands.json").write_text(json.dumps(cleaned))


def digest_of_headers():
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for path in sorted((ROOT / "src").rglob("*.h")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/light")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if not TOOL.exists():
        print("skipped: no clang-tidy in .venv (scripts/setup --checks installs it)")
        return 77
    if not (arguments.build / "compile_commands.json").exists():
        print(f"skipped: no compile_commands.json in {arguments.build} (cmake --preset light writes it)")
        return 77
    entries = commands(arguments.build)
    wanted = [path.resolve() for path in arguments.files] or sorted(entries)
    folder = arguments.build / "tidy"
    write_database([entries[path] for path in wanted if path in entries], folder)
    headers = digest_of_headers()

    def check(path):
        mark = folder / hashlib.sha256(headers.encode() + str(path).encode() + path.read_bytes()).hexdigest()
        if mark.exists():
            return None
        run = subprocess.run([TOOL, "--quiet", "-p", folder, *EXTRA, path], capture_output=True, text=True)
        if run.returncode == 0:
            mark.touch()
            return None
        return run.stdout + "".join(line + "\n" for line in run.stderr.splitlines() if "error" in line)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [text for text in pool.map(check, (path for path in wanted if path in entries)) if text]
    print("".join(faults), end="")
    print(f"{len(wanted)} files, {len(faults)} with findings")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
