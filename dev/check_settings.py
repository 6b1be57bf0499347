#!/usr/bin/env python3
"""Finds settings that nothing reads: a field of base/settings/*.h that no file outside settings/
and config/ names.

usage: check_settings.py [ROOT]     exit 0 when every field is read; prints each breach as
path:line: reason

A key of the configuration fills a field (program/config/keys_*.cc); a part of the program takes the
field's struct. A field that no part names is a
key that is accepted, documented and without effect. Names are looked up as `.NAME`, `->NAME` or
`::NAME`, so a field needs a name of its
own: one that is common elsewhere (`size`, `name`) would always look read.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(
    sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
)
# A data member: indented by two, a type, a name, then an initialiser or the end. Functions and
# enumerators have other shapes.
FIELD = re.compile(
    r"^  (?!using |static |friend |return |bool operator|enum )"
    r"[A-Za-z_:][\w:<>, *]*\s(\w+)(?:\s*=[^=].*|\{.*\})?;"
)


def fields(header):
    """(line number, name) of every data member in a header of settings/. A struct NAMEKey describes
    settings and holds none.
    """
    struct = ""
    for number, line in enumerate(header.read_text().splitlines(), 1):
        opened = re.match(r"struct (\w+)", line)
        struct = opened[1] if opened else struct
        found = FIELD.match(line.split("//")[0].rstrip())
        if found and not struct.endswith("Key"):
            yield number, found[1]


def main():
    readers = [
        path
        for folder in ("src",)
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cc", ".h")
        and path.relative_to(ROOT).parts[1] not in ("config", "settings")
    ]
    text = "\n".join(path.read_text() for path in readers)
    # A struct's own function may be what the program reads (reports_to() reads report_to).
    own = {
        header: header.read_text() for header in sorted((ROOT / "src/base/settings").glob("*.h"))
    }
    breaches, count = [], 0
    for header, body in own.items():
        for number, name in fields(header):
            count += 1
            read = re.search(rf"(?:\.|->|::){name}\b", text)
            inside = any(
                re.search(rf"(?<![\w.])(?:\w+\.)?{name}\b", line)
                for line in body.splitlines()
                if "return" in line
            )
            if not read and not inside:
                breaches.append(
                    f"{header.relative_to(ROOT)}:{number}: nothing outside settings/ and config/ "
                    f"reads `{name}`"
                )
    if count < 50:
        breaches.append(
            f"only {count} fields found in src/base/settings: the pattern no longer fits the "
            "headers"
        )
    print("\n".join(breaches) or f"{count} settings, each read by some part")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
