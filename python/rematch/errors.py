"""The exception of this package."""

import re
from typing import Dict, List

_PROBLEM = re.compile(
    r"^error: (.*?)\n  where: (.*?)\n  what:  (.*?)\n  fix:   (.*?)$", re.DOTALL | re.MULTILINE
)
_KINDS = {2: "config", 3: "data", 4: "environment", 130: "interrupted"}


class Error(Exception):
    """A problem that the caller can fix. Its text is the program's four-line message.

    Attributes:
        kind: "data" (values), "config" (options) or "environment" (files); of the program also
        "interrupted" and "bug".
        problems: all of them, each with the keys error, where, what and fix; `error`, `where`,
        `what` and `fix` are those of the first.

    Example:
        >>> try:
        ...     rematch.read_log("no/such/run")
        ... except rematch.Error as error:
        ...     print(error.kind, "|", error.fix)
        environment | give a run's directory (training.output_dir/run_name) or its logging.jsonl
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
        return "\n".join(
            f"{p['error']}\n  where: {p['where']}\n  what:  {p['what']}\n  fix:   {p['fix']}"
            for p in self.problems
        )


def problem(kind: str, error: str, where: str, what: str, fix: str) -> Error:
    """An Error with one problem."""
    return Error(kind, [{"error": error, "where": where, "what": what, "fix": fix}])


def from_program(command: str, code: int, output: str) -> Error:
    """Makes an Error from the program's output and exit code; a negative code is a signal."""
    found = [
        dict(zip(("error", "where", "what", "fix"), parts)) for parts in _PROBLEM.findall(output)
    ]
    if found:
        return Error(_KINDS.get(code, "bug"), found)
    what = f"signal {-code} ended it" if code < 0 else f"exit code {code}"
    fix = (
        "look for the system's messages about memory, or give fewer images"
        if code == -9
        else "run the same command in a terminal"
    )
    last = output.strip().splitlines()[-1:]
    return problem(
        _KINDS.get(code, "bug"), f"`{command}` failed", command, ": ".join([what, *last]), fix
    )
