#!/usr/bin/env python3
"""Finds references that lead nowhere: citations of the contract, links between pages, names of
files and tests.

usage: check_references.py [ROOT]     exit 0 when everything resolves; prints each breach as
path:line: reason

Checked are
- `BEHAVIOUR 4.3`, `MODEL 2`, `ENGINES 1.6`, `STAGES.md`, …: docs/contract/ has the page, the
  section and the numbered item
- `[text](path#heading)` in a page: the file exists, and the heading in it
- paths below a folder of the repository (docs/, tests/, scripts/, …) in comments and pages, and in
  src/ in the texts that users read
- names of source files in comments and pages, by path or by the name alone
- `Suite.Case` and `Suite.*` in pages: tests/ has such a test
- no file is a symbolic link
A name with NAME in it is a pattern for others to follow.
"""

import fnmatch
import functools
import pathlib
import re
import sys

FOLDERS = (
    "src",
    "tests",
    "bench",
    "fuzz",
    "docs",
    "dev",
    "scripts",
    "configs",
    "cmake",
    "python",
    ".github",
    ".ci",
)
SUFFIXES = {".h", ".cc", ".py", ".md", ".txt", ".yaml", ".yml", ".cmake", ".how", ".sh", ""}
SKIPPED = (
    "docs/contract/openspec/changes/archive/",
    "tests/golden/",
    "tests/config/data/",
    "dev/check_references.py",
    "tests/house/references_check.py",
)
# Source files of other projects, and files that a model directory brings.
FOREIGN = (
    "torch/*",
    "ATen/*",
    "c10/*",
    "nlohmann/*",
    "fmt/*",
    "gtest/*",
    "tensorflow/*",
    "jpeglib.h",
    "Python.h",
    "optimization.py",
    "modeling_*.py",
    "custom_function.h",
)

PAGES = "BEHAVIOUR|MODEL|RASTER|STAGES|ENGINES|ORIGIN_KEYS|DESIGN|DIST|MACHINE"
NUMBERS = r"\d+(?:\.\d+)?(?:(?:, ?|–|-| and )\d+(?:\.\d+)?)*"
CITATION = re.compile(rf"\b({PAGES})(?:\.md)? ({NUMBERS})")
PAGE_NAME = re.compile(
    rf"\b(?:({PAGES})\.md|(BEHAVIOUR|RASTER|STAGES|ENGINES|ORIGIN_KEYS|DESIGN)\b)"
)
OWN_CITATION = re.compile(r"\((\d+\.\d)\)")
OLD_SOURCE = re.compile(r"\bseeds \d{3}\b|\.\./shared|\bcontract_\d")
LINK = re.compile(r"\]\(([^)\s]+)\)")
REPO_PATH = re.compile(
    rf"(?<![\w/.-])((?:{'|'.join(re.escape(name) for name in FOLDERS)})/[\w./*{{}},-]*[\w*}}])"
)
SOURCE_NAME = re.compile(r"(?<![\w/.*<…-])((?:[\w-]+/)*[\w*-]+\.(?:h|cc|py|cmake))\b(?![\w(/])")
TEST_NAME = re.compile(r"`([A-Z]\w+\.(?:[A-Z]\w+|\*))`")
TEST = re.compile(
    r"\b(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)|\badd_test\(NAME (\w+)\.(\w+)"
)
COMMENT = {
    ".h": "//",
    ".cc": "//",
    ".py": "#",
    ".cmake": "#",
    ".sh": "#",
    ".txt": "#",
    ".yaml": "#",
    ".yml": "#",
    "": "#",
}


class Repository:
    def __init__(self, root):
        self.root = root
        self.files = {
            path.relative_to(root).as_posix()
            for folder in FOLDERS
            for path in (root / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        self.files |= {path.name for path in root.iterdir() if path.is_file()}
        self.names = {name.rsplit("/", 1)[-1] for name in self.files}

    def texts(self):
        """(path, text) of every file of ours that people read."""
        for name in sorted(self.files):
            path = self.root / name
            if path.suffix in SUFFIXES and not name.startswith(SKIPPED):
                yield name, path.read_text()

    def has_path(self, name):
        """True for a file or folder; `*` matches, {a,b} stands for several."""
        braces = re.search(r"\{([^}]*)\}", name)
        if braces:
            return all(
                self.has_path(name[: braces.start()] + part + name[braces.end() :])
                for part in braces[1].split(",")
            )
        if "*" in name:
            return any(fnmatch.fnmatch(file, name) for file in self.files)
        return (self.root / name).exists() or (
            self.root / (name + ".cc")
        ).exists()  # a program of the build is named after its source

    def has_source(self, name):
        """True when `name` means a file: by the end of its path, or by its name alone."""
        if "/" not in name:
            return name in self.names or ("*" in name and bool(fnmatch.filter(self.names, name)))
        return any(
            file == name or file.endswith("/" + name) or fnmatch.fnmatch(file, "*/" + name)
            for file in self.files
        )

    @functools.cached_property
    def tests(self):
        """Names of all tests, as Suite.Case and as Suite.*."""
        found = set()
        for name in self.files:
            if name.startswith("tests/") and name.endswith((".cc", "CMakeLists.txt")):
                for suite, case, added_suite, added_case in TEST.findall(
                    (self.root / name).read_text()
                ):
                    found |= {
                        f"{suite or added_suite}.{case or added_case}",
                        f"{suite or added_suite}.*",
                    }
        return found

    @functools.lru_cache(maxsize=None)
    def sections(self, page):
        """Numbers that a contract page defines: {"4", "4.3", …}; None without that page."""
        path = self.root / "docs/contract" / f"{page}.md"
        if not path.exists():
            return None
        numbers, section = set(), None
        for line in path.read_text().splitlines():
            if heading := re.match(r"## (\d+) ", line):
                section = heading[1]
                numbers.add(section)
            elif line.startswith("## "):
                section = None
            elif (item := re.match(r"(\d+)\. ", line)) and section:
                numbers.add(f"{section}.{item[1]}")
        return numbers

    @functools.lru_cache(maxsize=None)
    def anchors(self, name):
        headings = re.findall(r"^#+ (.+)$", (self.root / name).read_text(), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def citations(repository, name, line):
    for page, numbers in CITATION.findall(line):
        known = repository.sections(page)
        if known is None:
            yield f"docs/contract/ has no page {page}"
            continue
        for number in re.findall(r"\d+(?:\.\d+)?", numbers):
            if number not in known:
                yield f"docs/contract/{page}.md has no {number}"
    for found in PAGE_NAME.finditer(line):
        page = found[1] or found[2]
        if repository.sections(page) is None:
            yield f"docs/contract/ has no page {page}"
    if name.startswith("docs/contract/"):
        page = pathlib.PurePosixPath(name).stem
        for number in OWN_CITATION.findall(line):
            if number not in (repository.sections(page) or set()):
                yield f"this page has no {number}"
    if found := OLD_SOURCE.search(line):
        yield f'"{found[0]}" is not in this repository'


def links(repository, name, line):
    for target in LINK.findall(line):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        here = (repository.root / name).parent
        there = (here / path).resolve() if path else repository.root / name
        if not there.exists():
            yield f"the link to {target} leads nowhere"
        elif (
            anchor
            and there.suffix == ".md"
            and anchor not in repository.anchors(there.relative_to(repository.root).as_posix())
        ):
            yield f"{path or 'this page'} has no heading #{anchor}"


def paths(repository, prose, comment):
    """`prose` is all that people read of a line, `comment` its comment: file names without a folder
    are looked for only there.
    """
    known = REPO_PATH.findall(prose)
    for path in known:
        if (
            "NAME" not in path
            and not repository.has_path(path.rstrip(".,"))
            and not repository.has_source(path)
        ):
            yield f"there is no {path}"
    for source in SOURCE_NAME.findall(comment):
        if any(source in path for path in known) or any(
            fnmatch.fnmatch(source, pattern) for pattern in FOREIGN
        ):
            continue
        if not repository.has_source(source):
            yield f"there is no {source}"


def tests(repository, line):
    for name in TEST_NAME.findall(line):
        if name not in repository.tests:
            yield f"no test is called {name}"


def comment_of(suffix, line):
    """The comment of a source line, all of a page's line."""
    if suffix in (".md", ".how"):
        return line
    at = line.find(COMMENT[suffix])
    return line[at:] if at >= 0 else ""


def breaches(repository):
    for name in sorted(repository.files):
        if (repository.root / name).is_symlink():
            yield name, 1, "a symbolic link, which patches and archives lose: keep a copy"
    for name, text in repository.texts():
        suffix = pathlib.PurePosixPath(name).suffix
        for number, line in enumerate(text.splitlines(), 1):
            found = list(citations(repository, name, line))
            if "#include" not in line:
                comment = comment_of(suffix, line)
                found += paths(repository, line if name.startswith("src/") else comment, comment)
            if suffix == ".md":
                found += links(repository, name, line)
                found += tests(repository, line)
            for reason in found:
                yield name, number, reason


def main():
    root = (
        pathlib.Path(sys.argv[1])
        if len(sys.argv) > 1
        else pathlib.Path(__file__).resolve().parent.parent
    )
    found = list(breaches(Repository(root.resolve())))
    for name, number, reason in found:
        print(f"{name}:{number}: {reason}")
    print(f"{len(found)} references lead nowhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
