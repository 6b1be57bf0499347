#!/usr/bin/env python3
"""Runs clang-tidy (of .venv, version pinned by scripts/setup --checks) over the torch-free sources,
with the checks of .clang-tidy.

usage: check_tidy.py [--build DIR] [FILE …]     DIR holds compile_commands.json (default
build/light); FILE: only these sources

Torch-free are sources that compile without torch's headers: with those a file takes half a minute.
Exit 1 when a check finds something; 77 ("skipped: …") without clang-tidy or compile_commands.json.
Nearly all the time goes into the headers of the standard library, so sources with equal options are
checked in batches, as one text that includes them; a batch that does not pass is checked again file
by file. Files that passed are remembered in DIR/tidy by a hash of their text and of all headers, so
that a second run looks only at what changed.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / ".venv/bin/clang-tidy"
BATCH = 12
# Flags of GCC that clang does not know; its precompiled headers, which clang cannot read, are
# dropped from the commands.
EXTRA = [
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-ignored-optimization-argument",
]
# clang-tidy's clang has no header of OpenMP.
SKIPPED = {ROOT / "src/model/kernels/team_openmp.cc"}


def options(entry):
    """The words of a compile command without its files and without precompiled headers."""
    words = entry["command"].split()
    for name in ("-include", "-o", "-c"):
        while name in words:
            at = words.index(name)
            del words[at : at + 2]
    return [word for word in words if word not in ("-Winvalid-pch", "-Werror")]


def read_commands(build):
    """source file → its compile command, for the torch-free sources of src/."""
    entries = json.loads((build / "compile_commands.json").read_text())
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if (
            path.is_relative_to(ROOT / "src")
            and path not in SKIPPED
            and "pch" not in path.name
            and "torch/include" not in entry["command"]
        ):
            found[path] = entry
    return found


def make_batches(paths, entries):
    """Lists of at most BATCH sources of one folder with equal options."""
    alike = collections.defaultdict(list)
    for path in paths:
        alike[(path.parent, " ".join(options(entries[path])))].append(path)
    return [
        group[start : start + BATCH]
        for group in alike.values()
        for start in range(0, len(group), BATCH)
    ]


def write_database(batches, entries, folder):
    """One text a batch, and the commands of the texts and of the sources themselves."""
    folder.mkdir(parents=True, exist_ok=True)
    written, texts = [], []
    for number, batch in enumerate(batches):
        text = folder / f"batch_{number}.cc"
        text.write_text("".join(f'#include "{path}"  // NOLINT\n' for path in batch))
        texts.append(text)
        for path in (text, *batch):
            entry = entries[batch[0] if path == text else path]
            command = " ".join([*options(entry), "-c", str(path)])
            written.append({"directory": entry["directory"], "file": str(path), "command": command})
    (folder / "compile_commands.json").write_text(json.dumps(written))
    return texts


def find_faults(path, folder):
    """What clang-tidy says of a file; "" when nothing."""
    run = subprocess.run(
        [TOOL, "--quiet", "-p", folder, *EXTRA, path], capture_output=True, text=True
    )
    if run.returncode == 0:
        return ""
    return run.stdout + "".join(line + "\n" for line in run.stderr.splitlines() if "error" in line)


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
        print(
            f"skipped: no compile_commands.json in {arguments.build} (cmake --preset light writes "
            "it)"
        )
        return 77
    entries = read_commands(arguments.build)
    folder = arguments.build / "tidy"
    headers = digest_of_headers()

    def mark_of(path):
        text = headers.encode() + str(path).encode() + path.read_bytes()
        return folder / hashlib.sha256(text).hexdigest()

    wanted = [path.resolve() for path in arguments.files] or sorted(entries)
    wanted = [path for path in wanted if path in entries]
    batches = make_batches([path for path in wanted if not mark_of(path).exists()], entries)
    texts = write_database(batches, entries, folder)

    def check(text, batch):
        faults = []
        alone = len(batch) == 1 or find_faults(text, folder)
        for path in batch:
            fault = find_faults(path, folder) if alone else ""
            if fault:
                faults.append(fault)
            else:
                mark_of(path).touch()
        return faults

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for found in pool.map(check, texts, batches) for fault in found]
    print("".join(faults), end="")
    print(f"{len(wanted)} files, {len(faults)} with findings")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
