#!/usr/bin/env python3
"""Finds names in unnamed namespaces that two sources of one target both define: compiled together (REMATCH_UNITY) they would clash.

usage: check_unity_names.py [ROOT]     exit 0 when all differ; prints each breach as path:line: reason

Looks at tests and libraries, at definitions that begin a line. Functions may share a name when their parameters differ.
The compiler finds what this misses; this finds most of it in a second.
"""
import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
TARGET = re.compile(r"rematch_(library|test|test_support)\(\s*(\w+)([^()]*)\)")
KEYWORDS = {"TORCH", "NO_PCH", "LINK", "LABELS", "TIMEOUT", "EXTERNAL"}
TYPE = re.compile(r"^(?:struct|class|enum class|enum|union) (\w+)")
CONSTANT = re.compile(r"\b(k[A-Z]\w*)\s*(?:=|\{|\[)")
FUNCTION = re.compile(r"^(?:\[\[[\w:]+\]\] )?[\w:<>,&* ]*?[\w>&*] ?\b(\w+)\((.*)$")
VARIABLE = re.compile(r"^(?:static )?(?:const )?[\w:<>,&* ]+[ &*](\w+)\s*(?:=|\{|;)")


def targets():
    """(name, sources) of every target whose sources may be compiled together."""
    for listing in sorted([*ROOT.glob("src/**/CMakeLists.txt"), *ROOT.glob("tests/**/CMakeLists.txt")]):
        text = re.sub(r"#.*", "", listing.read_text())
        for kind, name, words in TARGET.findall(text):
            words = words.split()
            if kind == "library" and ("NO_PCH" in words or name == "families"):
                continue
            after = words[words.index("SOURCES") + 1 :]
            sources = itertools.takewhile(lambda word: word not in KEYWORDS, after)
            yield name, [listing.parent / source for source in sources if (listing.parent / source).exists()]


def names(path):
    """line number of every (name, parameters) that the unnamed namespaces of a source define; parameters are "" but for functions."""
    found, inside = {}, False
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if line == "namespace {":
            inside = True
        elif line == "}  // namespace":
            inside = False
        elif inside and line and line[0] not in " }/#)" and not line.startswith(("using ", "template", "namespace ", "TEST")):
            constants = CONSTANT.findall(line) if "const" in line else []
            kind, function, variable = TYPE.match(line), FUNCTION.match(line), VARIABLE.match(line)
            if constants:
                for name in constants:
                    found[(name, "")] = number
            elif kind:
                found[(kind[1], "")] = number
            elif function:
                parameters = function[2] if ")" in line else function[2] + lines[number].strip()
                found[(function[1], re.sub(r"\s|\b\w+(?=[,)])|=[^,)]*", "", parameters.split(") ")[0] + ")"))] = number
            elif variable:
                found[(variable[1], "")] = number
    return found


def main():
    breaches, count = [], 0
    for target, sources in targets():
        count += 1
        for (first, one), (second, other) in itertools.combinations([(path, names(path)) for path in sources], 2):
            for key in one.keys() & other.keys():
                where = f"{second.relative_to(ROOT)}:{other[key]}"
                breaches.append(f"{where}: {target} has `{key[0]}` in {first.relative_to(ROOT)}:{one[key]} too; give one another name")
    if count < 20:
        breaches.append(f"only {count} targets found: the patterns no longer fit the lists of CMake")
    print("\n".join(breaches) or f"{count} targets, no name twice")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
