#!/usr/bin/env python3
"""Prints how much code `src/` holds: bytes without comments, indentation and blank lines.

    dev/measure_code.py [--folders] [ROOT]     # by wing; with --folders by folder too
    dev/measure_code.py --max dev/code_budget.txt     # exit 1 when a wing exceeds its budget

The total is that of .cc and .h files. The files of the report's page are listed below it.
"""

import argparse
import pathlib
import re
import sys

WINGS = {
    "base": "base settings flow observe",
    "model": "nn kernels model checkpoint vision text",
    "engine": "rollout ranks",
    "learn": "data augment estep pack mstep train evaluate resume",
    "tools": "import records review report draw monitor plan stages python",
    "program": "config assembly cli",
}
WING_OF_FOLDER = {folder: wing for wing, folders in WINGS.items() for folder in folders.split()}

# A comment, or a literal whose text may look like one. A raw string ends at its own delimiter.
TOKEN = re.compile(
    r'(?P<literal>R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])')"
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)


def strip_comments(text):
    return TOKEN.sub(lambda match: match["literal"] or "", text)


def code_size(path):
    """Bytes of the file's code: each line without its indentation, with one line break."""
    text = strip_comments(path.read_text(encoding="utf-8"))
    lines = (line.strip() for line in text.split("\n"))
    return sum(len(line.encode()) + 1 for line in lines if line)


def folder_of(path, src):
    """The folder that a file counts for, in a tree with wings or without."""
    parts = path.relative_to(src).parts
    in_wing = parts[0] in WINGS and len(parts) > 2 and parts[1] in WING_OF_FOLDER
    return parts[1] if in_wing else parts[0]


def read_budget(path):
    """{wing: bytes}, from lines `WING KILOBYTES`; `#` begins a comment."""
    lines = (line.partition("#")[0].split() for line in path.read_text().splitlines())
    return {wing: int(kilobytes) * 1000 for wing, kilobytes in filter(None, lines)}


def breaches(sizes, budget):
    """Sentences about wings over their budget, and about names that only one side has."""
    for name in sorted(sizes.keys() ^ budget.keys()):
        yield f"{name}: named in {'the budget' if name in budget else 'the sources'} only"
    for name in (name for name in sizes if name in budget):
        if sizes[name] > budget[name]:
            yield (
                f"{name}: {sizes[name]} bytes of code, {sizes[name] - budget[name]} over its "
                "budget:"
                " remove code, or raise the line in a commit that says what users get for it"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1]
    )
    parser.add_argument("--folders", action="store_true", help="also print every folder")
    parser.add_argument("--max", type=pathlib.Path, metavar="BUDGET", help="kilobytes by wing")
    arguments = parser.parse_args()
    src = arguments.root / "src"
    sizes, files, pages = {}, {}, 0
    for path in sorted(src.rglob("*")):
        if path.suffix in (".js", ".css", ".html"):
            pages += code_size(path)
        if path.suffix not in (".cc", ".h"):
            continue
        folder = folder_of(path, src)
        sizes[folder] = sizes.get(folder, 0) + code_size(path)
        files[folder] = files.get(folder, 0) + 1
    unknown = sorted(set(sizes) - set(WING_OF_FOLDER))
    if unknown:
        sys.exit(f"error: no wing is known for {', '.join(unknown)}")
    total = sum(sizes.values())
    wings = {
        wing: sum(sizes.get(folder, 0) for folder in folders.split())
        for wing, folders in WINGS.items()
    }
    wings["all"] = total
    print(f"{'wing':<16} {'files':>6} {'bytes':>9} {'share':>6}")
    for wing, folders in WINGS.items():
        present = [folder for folder in folders.split() if folder in sizes]
        count, size = sum(files[folder] for folder in present), wings[wing]
        print(f"{wing:<16} {count:>6} {size:>9} {size / total:>6.1%}")
        for folder in present if arguments.folders else []:
            print(f"  {folder:<14} {files[folder]:>6} {sizes[folder]:>9}")
    print(f"{'all':<16} {sum(files.values()):>6} {total:>9}")
    print(f"{'pages':<16} {'':>6} {pages:>9}")
    if arguments.max:
        found = list(breaches(wings, read_budget(arguments.max)))
        print("\n".join(found) or "within the budget")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
