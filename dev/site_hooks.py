"""Hooks of mkdocs.yml: pages outside docs/ join the site, links lead to them, lists look as they do
on GitHub.

A link to a source file becomes plain text, because the site has no sources.
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTSIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "bench/faults.md",
    "src/README.md",
)
PICTURES = ("tests/golden/first_run/photos/rocket.jpg",)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*(`{3,})[^`]*$")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")


def on_files(files, config):
    """Adds the pages and pictures outside docs/ below repository/."""
    for name in OUTSIDE:
        files.append(
            File.generated(
                config, f"repository/{name}", content=(ROOT / name).read_text(encoding="utf-8")
            )
        )
    for name in PICTURES:
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def place_in_repository(src_uri):
    """Where a page of the site lies in the repository."""
    return (
        src_uri.removeprefix("repository/")
        if src_uri.startswith("repository/")
        else f"docs/{src_uri}"
    )


def place_in_site(path):
    """Where a file of the repository lies in the site; None for a file that the site lacks."""
    if path in OUTSIDE or path in PICTURES:
        return f"repository/{path}"
    if path == "README.md":
        return "index.md"
    return (
        path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None
    )


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri

    def rewrite(match):
        mark, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match[0]
        there = place_in_site(
            posixpath.normpath(posixpath.join(posixpath.dirname(place_in_repository(here)), path))
        )
        if there is None:
            return text
        link = posixpath.relpath(there, posixpath.dirname(here) or ".")
        return f"{mark}[{text}]({link}{'#' + anchor if anchor else ''})"

    lines, fence = [], None
    for line in markdown.splitlines():
        if mark := FENCE.match(line):
            fence = None if fence and mark[1].startswith(fence) else fence or mark[1]
        if fence is None:
            before = lines[-1] if lines else ""
            # Python-Markdown starts a list only after an empty line.
            if (
                ITEM.match(line)
                and before.strip()
                and not ITEM.match(before)
                and not before.startswith((" ", "|", "#"))
            ):
                lines.append("")
            line = LINK.sub(rewrite, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def on_page_content(html, page, config, files):
    """In tables GitHub shows `\\|` as a bar, in code too."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
