"""Sums up ctest's JUnit files: lists failed tests and the reasons of skipped ones, and ends with "N passed, N failed, N skipped".

Exit 1 when a test failed or none ran.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter


def skip_reason(case):
    """The message of GTEST_SKIP (the line after "file:line: Skipped"), or a script's own line "skipped: …"."""
    output = case.findtext("system-out") or ""
    found = re.search(r": Skipped\n(.+)", output) or re.search(r"^skipped: (.+)", output, re.MULTILINE)
    return found.group(1).strip() if found else "no reason given"


def skipped_itself(case):
    """True for GTEST_SKIP and the like; ctest also reports a test whose program is not built as "notrun"."""
    note = case.find("skipped")
    return case.get("status") == "notrun" and note is not None and note.get("message", "").startswith("SKIP_")


def main(paths):
    passed, failed, skipped = 0, [], Counter()
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            status = case.get("status")
            if status == "run":
                passed += 1
            elif status == "disabled" or skipped_itself(case):
                skipped[skip_reason(case)] += 1
            else:  # "fail", or "notrun" because the program is missing
                failed.append(case.get("name"))
    for reason, count in skipped.most_common():
        print(f"skipped {count}: {reason}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed, {sum(skipped.values())} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
