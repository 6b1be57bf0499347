"""What commands give back: dicts and files that a notebook shows."""

import os
from html import escape
from pathlib import Path
from typing import Any, Dict, Mapping


class Scores(Dict[str, Any]):
    """Numbers by name. Printed, or in a notebook, they show what the terminal would.

    Attributes:
        shown: the text of the terminal.
    """

    def __init__(self, values: Mapping[str, Any], shown: str) -> None:
        super().__init__(values)
        self.shown = shown

    def __str__(self) -> str:
        return self.shown.strip()

    def _repr_html_(self) -> str:
        return as_html(self.shown)


class Written:
    """A file or directory that a command wrote; any function that takes a path takes it.

    Attributes:
        path: where it is.
        shown: what the program said about it.
    """

    def __init__(self, path: "os.PathLike[str]", shown: str) -> None:
        self.path = Path(path)
        self.shown = shown

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({os.fspath(self)!r})"

    def _repr_html_(self) -> str:
        return as_html(self.shown)


class Configuration(Written):
    """A YAML; a notebook shows its text."""

    def _repr_html_(self) -> str:
        return as_html(self.shown + "\n" + self.path.read_text(encoding="utf-8"))


class Page(Written):
    """A page of HTML; a notebook shows it in a frame."""

    def _repr_html_(self) -> str:
        page = escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" style="width:100%;height:720px;border:0"></iframe>'


def as_html(text: str) -> str:
    return f"<pre>{escape(text.strip())}</pre>"
