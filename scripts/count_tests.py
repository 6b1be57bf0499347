"""Sums up ctest's JUnit files: lists failed tests and the reasons of skipped ones, and ends with "N
passed, N failed, N skipped".

    count_tests.py RESULTS.xml …

A program that ran all its cases in one process is one test to ctest; gtest wrote PROGRAM.cases.xml
next to RESULTS.xml, and its cases count.
Exit 1 when a test failed or none ran.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def skip_reason(case):
    """The message of GTEST_SKIP (the line after "file:line: Skipped"), or a script's own line
    "skipped: …".
    """
    output = case.findtext("system-out") or ""
    found = re.search(r": Skipped\n(.+)", output) or re.search(
        r"^skipped: (.+)", output, re.MULTILINE
    )
    return found.group(1).strip() if found else "no reason given"


def skipped_itself(case):
    """True for GTEST_SKIP and the like; ctest also reports a test whose program is not built as
    "notrun".
    """
    note = case.find("skipped")
    return (
        case.get("status") == "notrun"
        and note is not None
        and note.get("message", "").startswith("SKIP_")
    )


def outcomes(path):
    """(name, "passed" | "failed" | "skipped", reason) of each test in a JUnit file of ctest."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        cases = list(case_outcomes(path.with_name(f"{name}.cases.xml")))
        yield from cases
        if status == "run":
            if not cases:
                yield name, "passed", ""
        elif status == "disabled" or skipped_itself(case):
            yield name, "skipped", skip_reason(case)
        elif "failed" not in (
            outcome for _, outcome, _ in cases
        ):  # also "notrun" because the program is missing, or a crash
            yield name, "failed", ""


def case_outcomes(path):
    """As outcomes, for the cases of one program in gtest's own file; none without the file."""
    if not path.exists():
        return
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            yield name, "failed", ""
        elif skipped is not None:
            yield (
                name,
                "skipped",
                skipped.get("message", "").partition("\n")[2].strip() or "no reason given",
            )
        elif case.get("status") == "run":
            yield name, "passed", ""


def main(paths):
    passed, failed, skipped = 0, [], Counter()
    for path in paths:
        for name, outcome, reason in outcomes(Path(path)):
            passed += outcome == "passed"
            if outcome == "failed":
                failed.append(name)
            elif outcome == "skipped":
                skipped[reason] += 1
    for reason, count in skipped.most_common():
        print(f"skipped {count}: {reason}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed, {sum(skipped.values())} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
