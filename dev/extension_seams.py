#!/usr/bin/env python3
"""Says how many files each extension test needs beside its own: a toy loss, target policy, match policy, backend and model family.

usage: extension_seams.py [--most N]     exit 1 when a seam needs more than N other files (default 1: the list in CMake), or a toy is gone

A toy is one source file. What else names it or what it registers (class, function or name in the YAML) has to be a test of it or a list in
CMake; whatever more is printed is what the seam costs.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# seam, the file that adds the toy, a pattern for the names by which others would have to know it
SEAMS = (
    ("loss", "tests/mstep/toy_loss.cc", r"toy_loss|ToyLoss"),
    ("target policy", "tests/extend/toy_target_policy_test.cc", r"toy_target_policy|ToyTarget"),
    ("match policy", "tests/extend/toy_match_policy_test.cc", r"toy_match_policy|ToyMatch"),
    ("rollout backend", "tests/extend/toy_backend_test.cc", r"toy_backend|ToyBackend"),
    ("model family", "tests/rollout/toy_family_test.cc", r"toy_family|ToyFamily"),
)


def other_files(own, pattern):
    """Files of src/, tests/ and cmake/ but `own` in which the pattern occurs."""
    for folder in ("src", "tests", "cmake"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".txt", ".cmake", ".md") and path != own and re.search(pattern, path.read_text()):
                yield path.relative_to(ROOT).as_posix()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=1)
    arguments = parser.parse_args()
    failed = False
    for seam, name, pattern in SEAMS:
        own = ROOT / name
        if not own.exists():
            print(f"{seam:16} {name} is missing")
            failed = True
            continue
        others = list(other_files(own, pattern))
        failed |= len(others) > arguments.most
        print(f"{seam:16} {name}: {len(others)} other {'file' if len(others) == 1 else 'files'} ({', '.join(others) or 'none'})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
