"""What rematch raises."""

from typing import Dict, List


class Error(Exception):
    """Something that the caller can mend; its text is the four lines that the program prints.

    Attributes:
        kind: "data" (values), "config" (options) or "environment" (files).
        problems: all of them, each with the keys error, where, what and fix; `error`, `where`, `what` and `fix` are those of the first.
    """

    kind: str
    problems: List[Dict[str, str]]

    def __init__(self, kind: str, problems: List[Dict[str, str]]) -> None:
        super().__init__(kind, problems)
        self.kind = kind
        self.problems = problems

    @property
    def error(self) -> str:
        return self.problems[0]["error"]

    @property
    def where(self) -> str:
        return self.problems[0]["where"]

    @property
    def what(self) -> str:
        return self.problems[0]["what"]

    @property
    def fix(self) -> str:
        return self.problems[0]["fix"]

    def __str__(self) -> str:
        return "\n".join(f"{p['error']}\n  where: {p['where']}\n  what:  {p['what']}\n  fix:   {p['fix']}" for p in self.problems)
