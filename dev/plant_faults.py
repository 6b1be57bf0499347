#!/usr/bin/env python3
"""Plants small faults (dev/planted_faults.txt), one at a time, in a copy of the tree and says
whether the tests of their folder see them.

usage: plant_faults.py [--folder FOLDER] [--first N] [--list]
       plant_faults.py --spec [TAG] [--build DIR] [--list]

The copy and its torch-free build (preset light) live in build/faults; the first build takes
minutes, a fault some seconds. --folder takes only faults below src/FOLDER, --first only the first
N; --list only checks that the list fits the sources (a test does).
--spec takes the faults of dev/spec_faults.txt instead, for each statement and scenario of
docs/contract/openspec/ (those whose tag starts with TAG), and runs the test that it names. Half of
them need torch, so they are planted in this tree and built in DIR (build/release); each file is
restored.
Prints a table; exit 1 when a fault survives, 2 when the list does not fit the sources or a fault
does not compile.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from spec_trace import read_statements

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/faults/tree"
BUILD = TREE / "build/light"
COPIED = ("src", "tests", "cmake", "CMakeLists.txt", "CMakePresets.json")
LINKED = (".venv", "bench", "configs", "demo", "docs", "fuzz", "scripts", "dev")
TEST_SECONDS = 180


@dataclass
class Fault:
    file: str
    programs: list
    old: str
    new: str


def read_faults():
    faults, lines = [], []
    for line in (ROOT / "dev/planted_faults.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            lines.append(line)
    for head, old, new in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        file, _, programs = head.partition(" : ")
        if not programs or old[:2] != "- " or new[:2] != "+ ":
            raise SystemExit(f"dev/planted_faults.txt: cannot read {head!r}")
        faults.append(Fault(file, programs.split(), old[2:], new[2:]))
    return faults


@dataclass
class SpecFault(Fault):
    tag: str
    test: str


def read_spec_faults():
    faults = []
    lines = [
        line
        for line in (ROOT / "dev/spec_faults.txt").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    for head, old, new in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        parts = head.split(" : ")
        if len(parts) != 4 or old[:2] != "- " or new[:2] != "+ ":
            raise SystemExit(f"dev/spec_faults.txt: cannot read {head!r}")
        tag, file, program, test = parts
        faults.append(
            SpecFault(
                file, [program], *(text[2:].replace("\\n", "\n") for text in (old, new)), tag, test
            )
        )
    return faults


def spec_breaches(faults):
    """What a list of faults lacks: a statement or scenario without one, a test that does not exist
    or claims another statement.
    """
    statements = read_statements(ROOT, [])
    claims = {}
    for path in (ROOT / "tests").rglob("*.cc"):
        for tags, suite, name in re.findall(
            r"^// spec:(.*)\n(?://.*\n)*\w+\(\s*(\w+),\s*(\w+)", path.read_text(), re.M
        ):
            claims[f"{suite}.{name}"] = tags.split()
    for tag in sorted(statements.keys() - {fault.tag for fault in faults}):
        yield f"dev/spec_faults.txt: no fault for {tag}"
    for fault in faults:
        if fault.tag not in claims.get(fault.test, []):
            yield f"dev/spec_faults.txt: {fault.test} does not claim {fault.tag}"


def spec_verdict(fault, build_dir):
    path = ROOT / "src" / fault.file
    text = path.read_text()
    build_command = [
        "cmake",
        "--build",
        build_dir,
        "--parallel",
        str(os.cpu_count()),
        "--target",
        *fault.programs,
    ]
    path.write_text(text.replace(fault.old, fault.new))
    try:
        built = subprocess.run(build_command, cwd=ROOT, capture_output=True, text=True)
        if built.returncode != 0:
            print(built.stdout[-2000:], file=sys.stderr)
            return "does not compile"
        command = [
            build_dir / "tests" / fault.programs[0],
            f"--gtest_filter={fault.test}",
            "--gtest_brief=1",
        ]
        try:
            run = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=TEST_SECONDS
            )
        except subprocess.TimeoutExpired:
            return "seen"
        if "0 tests from" in run.stdout or "Running 0 tests" in run.stdout:
            return "no such test"
        return "seen" if run.returncode != 0 else "SURVIVES"
    finally:
        path.write_text(text)


def plant_spec_faults(prefix, build_dir, only_lists):
    faults = read_spec_faults()
    breaches = [
        *spec_breaches(faults),
        *(
            f"dev/spec_faults.txt: not once in src/{fault.file}: {fault.old}"
            for fault in faults
            if not occurs_once(fault)
        ),
    ]
    for breach in breaches:
        print(breach)
    if only_lists or breaches:
        print(f"{len(faults)} faults of the specification, {len(breaches)} breaches")
        return 2 if breaches else 0
    verdicts = []
    for fault in (one for one in faults if one.tag.startswith(prefix)):
        verdicts.append(spec_verdict(fault, build_dir))
        print(f"{fault.tag:14} {verdicts[-1]:16} {fault.file:40} {fault.test}", flush=True)
    print(
        f"{len(verdicts)} faults, {verdicts.count('seen')} seen, {verdicts.count('SURVIVES')} "
        "survive"
    )
    return 1 if "SURVIVES" in verdicts else 2 if set(verdicts) != {"seen"} else 0


def make_tree():
    """The sources, copied where they differ, so that an earlier build is used again."""
    TREE.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source, target = ROOT / name, TREE / name
        files = (
            [source]
            if source.is_file()
            else [
                path
                for path in source.rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            ]
        )
        wanted = set()
        for path in files:
            copy = TREE / path.relative_to(ROOT)
            wanted.add(copy)
            if copy.exists() and copy.read_bytes() == path.read_bytes():
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        if target.is_dir():
            for path in list(target.rglob("*")):
                if path.is_file() and path not in wanted:
                    path.unlink()
    for name in LINKED:
        link = TREE / name
        if (ROOT / name).exists() and not link.exists():
            link.symlink_to(ROOT / name)


def build(programs):
    return subprocess.run(
        ["cmake", "--build", BUILD, "--parallel", str(os.cpu_count()), "--target", *programs],
        capture_output=True,
        text=True,
    )


def is_seen(program):
    try:
        return (
            subprocess.run(
                [BUILD / "tests" / program, "--gtest_brief=1"],
                cwd=TREE,
                capture_output=True,
                timeout=TEST_SECONDS,
            ).returncode
            != 0
        )
    except subprocess.TimeoutExpired:
        return True


def occurs_once(fault):
    path = ROOT / "src" / fault.file
    return path.exists() and path.read_text().count(fault.old) == 1


def verdict_on(fault):
    path = TREE / "src" / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        return "stale"
    path.write_text(text.replace(fault.old, fault.new))
    try:
        built = build(fault.programs)
        if built.returncode != 0:
            print(built.stdout[-2000:], file=sys.stderr)
            return "does not compile"
        return "seen" if any(is_seen(program) for program in fault.programs) else "SURVIVES"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="")
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--spec", nargs="?", const="", default=None, metavar="TAG")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    arguments = parser.parse_args()
    if arguments.spec is not None:
        return plant_spec_faults(arguments.spec, arguments.build.resolve(), arguments.list)
    faults = [fault for fault in read_faults() if fault.file.startswith(arguments.folder)][
        : arguments.first
    ]
    if not faults:
        raise SystemExit(f"no fault below src/{arguments.folder}")
    if arguments.list:
        stale = [fault for fault in faults if not occurs_once(fault)]
        for fault in stale:
            print(f"dev/planted_faults.txt: not once in src/{fault.file}: {fault.old}")
        print(f"{len(faults)} faults, {len(stale)} stale")
        return 2 if stale else 0
    make_tree()
    subprocess.run(["cmake", "--preset", "light"], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    programs = sorted({program for fault in faults for program in fault.programs})
    built = build(programs)
    if built.returncode != 0:
        raise SystemExit("the tree without faults does not build:\n" + built.stdout[-2000:])
    for program in programs:
        if is_seen(program):
            raise SystemExit(f"{program} fails without any fault")
    verdicts = []
    for fault in faults:
        verdicts.append(verdict_on(fault))
        print(
            f"{verdicts[-1]:16} {fault.file:40} {fault.old.strip()}  →  {fault.new.strip()}",
            flush=True,
        )
    print(
        f"{len(faults)} faults, {verdicts.count('seen')} seen, {verdicts.count('SURVIVES')} survive"
    )
    return 1 if "SURVIVES" in verdicts else 2 if set(verdicts) != {"seen"} else 0


if __name__ == "__main__":
    sys.exit(main())
