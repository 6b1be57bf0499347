#!/usr/bin/env python3
"""Maps every statement and scenario of docs/contract/openspec/ to the tests that prove it: writes
docs/contract/SPEC_TRACE.md.

usage: spec_trace.py [--check] [ROOT]     --check writes nothing; exit 1 and one line per breach
when the table does not hold

A statement is a line "[tag] sentence", a scenario a title that ends in "[tag]", both below a
"### Requirement:". A test claims tags with a comment "// spec: tag tag" in the comment directly
above it. open.txt lists the statements that have no test yet, each with the reason. Breaches: a
normative line or a scenario without a tag, a tag given twice, an unknown tag, a claim that no test
follows or that a disabled or unbuilt one makes, a statement with neither a test nor a reason, or
with both, and a table that is out of date.
"""

import pathlib
import re
import sys
from dataclasses import dataclass, field

PAGES = "docs/contract"
SPEC = f"{PAGES}/openspec"
TAG = r"[a-z]+-\d{2}"
REQUIREMENT = re.compile(r"### Requirement: (.+)")
SCENARIO = re.compile(rf"#### (Scenario: .+?)(?: \[({TAG})\])?$")
STATEMENT = re.compile(rf"(?:- )?\[({TAG})\] (.+)")
NORMATIVE = re.compile(r"\b(SHALL|MUST|SHOULD)\b")
CLAIM = re.compile(r"\s*// spec:(.*)")
TEST = re.compile(
    r"\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)"
)
MAX_SENTENCE = 36


@dataclass
class Statement:
    tag: str
    sentence: str
    requirement: str
    source: str
    tests: list = field(default_factory=list)  # (name, path)
    open_because: str = ""


def spec_files(root):
    """The specification in force, then the changes on their way; archived changes are history."""
    yield from sorted((root / SPEC / "specs").glob("**/spec.md"))
    changes = root / SPEC / "changes"
    yield from sorted(
        path
        for path in changes.glob("*/specs/**/spec.md")
        if path.relative_to(changes).parts[0] != "archive"
    )


def read_statements(root, breaches):
    """tag -> Statement in the order of the files. A change may repeat a statement of the
    specification; the latter's wording is shown.
    """
    statements = {}
    for path in spec_files(root):
        source = path.relative_to(root).as_posix()
        requirement, in_scenario, seen, announced = "", False, set(), None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := REQUIREMENT.fullmatch(line):
                requirement, in_scenario, announced = found[1], False, None
                continue
            if found := SCENARIO.fullmatch(line):
                in_scenario, tag, sentence = True, found[2], found[1]
            elif not requirement or in_scenario:
                continue
            elif found := STATEMENT.fullmatch(line):
                tag, sentence = found[1], found[2]
            elif NORMATIVE.search(line):
                tag, sentence = None, line
            else:
                if announced and line.lstrip().startswith("- "):
                    announced.sentence += " " + line.strip()[2:]
                else:
                    announced = None
                continue
            if tag is None:
                breaches.append(f"{source}:{number}: no tag: {sentence}")
            elif tag in seen:
                breaches.append(f"{source}:{number}: tag {tag} is given twice")
            else:
                seen.add(tag)
                is_new = tag not in statements
                statement = statements.setdefault(
                    tag, Statement(tag, sentence, requirement, source)
                )
                # "… with these keys:" continues in the list below it.
                announced = statement if is_new and sentence.endswith(":") else None
    if not statements:
        breaches.append(f"{SPEC}/: no statement found")
    return statements


def claims_of(lines):
    """Yields (line number, tags, test name or None) for each claim: the test is what follows the
    comment block that holds it.
    """
    for index, line in enumerate(lines):
        claim = CLAIM.fullmatch(line)
        if not claim:
            continue
        after = index + 1
        while after < len(lines) and lines[after].lstrip().startswith("//"):
            after += 1
        # Two lines, for a name that wraps; a blank one between claim and test separates them.
        test = (
            TEST.match(" ".join(lines[after : after + 2]))
            if after < len(lines) and lines[after].strip()
            else None
        )
        yield index + 1, claim[1].split(), f"{test[1]}.{test[2]}" if test else None


def read_claims(root, statements, breaches):
    for path in sorted((root / "tests").glob("**/*.cc")):
        source = path.relative_to(root).as_posix()
        for number, tags, name in claims_of(path.read_text().splitlines()):
            lists = path.parent / "CMakeLists.txt"
            if name is None:
                breaches.append(f"{source}:{number}: no test follows this claim")
            elif "DISABLED_" in name:
                breaches.append(f"{source}:{number}: {name} is disabled and proves nothing")
            elif not lists.exists() or path.name not in lists.read_text():
                breaches.append(
                    f"{source}:{number}: {name} is not built "
                    f"({path.name} is not in {lists.relative_to(root).as_posix()})"
                )
            if not tags:
                breaches.append(f"{source}:{number}: a claim without a tag")
            for tag in tags:
                if tag not in statements:
                    breaches.append(f"{source}:{number}: unknown tag {tag}")
                elif name is not None and (name, source) not in statements[tag].tests:
                    statements[tag].tests.append((name, source))


def read_open(root, statements, breaches):
    path = root / SPEC / "open.txt"
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        tag, _, reason = line.partition(" ")
        where = f"{SPEC}/open.txt:{number}"
        if tag not in statements:
            breaches.append(f"{where}: unknown tag {tag}")
        elif statements[tag].open_because:
            breaches.append(f"{where}: {tag} is listed twice")
        elif not reason.strip():
            breaches.append(f"{where}: {tag} has no reason")
        else:
            statements[tag].open_because = reason.strip()


def check_coverage(statements, breaches):
    for statement in statements.values():
        if statement.tests and statement.open_because:
            name = statement.tests[0][0]
            breaches.append(
                f"{statement.tag}: listed in {SPEC}/open.txt although {name} claims it; "
                "take it off the list"
            )
        elif not statement.tests and not statement.open_because:
            breaches.append(
                f"{statement.tag}: neither a test nor a line in {SPEC}/open.txt "
                f"({shortened(statement.sentence)})"
            )


def shortened(sentence):
    if len(sentence) <= MAX_SENTENCE:
        return sentence
    short = sentence[:MAX_SENTENCE].rsplit(" ", 1)[0].rstrip(" ,;:(")
    # Markup that the cut left open would swallow the rest of the item.
    for mark in ("`", "**"):
        if short.count(mark) % 2:
            short += mark
    return short + " …"


def proof_of(statement):
    if not statement.tests:
        return f"*open:* {statement.open_because}"
    return ",\n  ".join(f"[{name}](../../{path})" for name, path in statement.tests)


def table(statements):
    everything = list(statements.values())
    num_open = sum(1 for statement in everything if not statement.tests)
    lines = [
        "# Every statement of the specification and its tests",
        "",
        "Written by `dev/spec_trace.py`; do not edit. Long statements are shortened:",
        "[`openspec/`](openspec/README.md) has them whole.",
        "",
        (
            f"{len(everything)} statements and scenarios: "
            f"{len(everything) - num_open} with tests, {num_open} open."
        ),
    ]
    heading = None
    for statement in everything:
        if heading != (statement.source, statement.requirement):
            heading = (statement.source, statement.requirement)
            name = statement.source.removeprefix(SPEC + "/")
            link = statement.source.removeprefix(PAGES + "/")
            lines += ["", f"## {statement.requirement}", "", f"From [{name}]({link}).", ""]
        sentence, proof = shortened(statement.sentence), proof_of(statement)
        lines.append(f"- **{statement.tag}** {sentence}\n  {proof}")
    return "\n".join(lines) + "\n"


def main(arguments):
    check = "--check" in arguments
    roots = [argument for argument in arguments if argument != "--check"]
    root = pathlib.Path(roots[0]) if roots else pathlib.Path(__file__).resolve().parent.parent
    breaches = []
    statements = read_statements(root, breaches)
    read_claims(root, statements, breaches)
    read_open(root, statements, breaches)
    check_coverage(statements, breaches)
    page, text = root / PAGES / "SPEC_TRACE.md", table(statements)
    if not check:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        breaches.append(f"{PAGES}/SPEC_TRACE.md: out of date; run python3 dev/spec_trace.py")
    for breach in breaches:
        print(breach)
    print(
        f"{len(statements)} statements, {sum(1 for s in statements.values() if s.tests)} with "
        "tests, "
        f"{len(breaches)} breaches"
    )
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
