"""Sums up ctest's JUnit files: lists failed tests with a part of their output, and the reasons of
skipped ones, and ends with "N passed, N failed, N skipped".

    count_tests.py RESULTS.xml …

A program that ran all its cases in one process is one test to ctest; gtest wrote PROGRAM.cases.xml
next to RESULTS.xml, and its cases count. RESULTS.again.xml holds a second run of what failed: what
passes there counts as passed and is named, with the output of the first run.
Exit 1 when a test failed or none ran.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

EXCERPT_LINES = 12
EXCERPT_WIDTH = 240


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


def excerpt(output):
    """The lines of a failed test's output from its first failure, or its last lines."""
    lines = output.rstrip().splitlines()
    for number, line in enumerate(lines):
        if re.search(r": Failure$|^error: |^Traceback|terminate called|libgomp:", line):
            return lines[number : number + EXCERPT_LINES]
    return lines[-EXCERPT_LINES:]


def outcomes(path):
    """(name, "passed" | "failed" | "skipped" | "again", reason or output) of each test in a JUnit
    file of ctest.
    """
    again = path.with_suffix(".again.xml")
    second = cases_of(again) if again.exists() else {}
    for name, case in cases_of(path).items():
        output = case.findtext("system-out") or ""
        status = second.get(name, case).get("status")
        cases = list(case_outcomes(path.with_name(f"{name}.cases.xml")))
        yield from cases
        if status == "run":
            if name in second:
                yield name, "again", output
            if not cases:
                yield name, "passed", ""
        elif status == "disabled":  # a piece of another test, which starts it
            continue
        elif skipped_itself(case):
            yield name, "skipped", skip_reason(case)
        elif "failed" not in (
            outcome for _, outcome, _ in cases
        ):  # also "notrun" because the program is missing, or a crash
            yield name, "failed", output


def cases_of(path):
    """The tests of a JUnit file by name."""
    return {case.get("name"): case for case in ElementTree.parse(path).getroot().iter("testcase")}


def case_outcomes(path):
    """As outcomes, for the cases of one program in gtest's own file; none without the file."""
    if not path.exists():
        return
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        failure = case.find("failure")
        if failure is not None:
            yield name, "failed", failure.get("message", "")
        elif skipped is not None:
            yield (
                name,
                "skipped",
                skipped.get("message", "").partition("\n")[2].strip() or "no reason given",
            )
        elif case.get("status") == "run":
            yield name, "passed", ""


def main(paths):
    counts, skipped, lines = Counter(), Counter(), []
    for path in paths:
        for name, outcome, text in outcomes(Path(path)):
            counts[outcome] += 1
            if outcome == "skipped":
                skipped[text] += 1
            elif outcome in ("failed", "again"):
                lines.append(f"failed: {name}" if outcome == "failed" else f"failed once: {name}")
                lines += [f"    {line[:EXCERPT_WIDTH]}" for line in excerpt(text)]
    for reason, count in skipped.most_common():
        print(f"skipped {count}: {reason}")
    for line in lines:
        print(line)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or counts["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
