"""Rematch, rollout-matching SFT of vision-language models.

The program is `rematch` on PATH; python -m rematch runs it too. For trainers in Python the stages of its loop are functions on plain lists
and dicts: parse, match, segment, pack and evaluate. They need no torch and no model weights.
"""

from importlib.metadata import PackageNotFoundError as _NotFound
from importlib.metadata import version as _version
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

if TYPE_CHECKING:
    from rematch.errors import Error as Error
    from rematch.stages import evaluate as evaluate, match as match, pack as pack, parse as parse, segment as segment

try:
    __version__ = _version("rematch")
except _NotFound:
    raise ImportError("rematch is not installed, only its sources are here: run scripts/wheel, then pip install dist/rematch-*.whl") from None
__all__ = ["Error", "evaluate", "match", "pack", "parse", "segment"]


def __dir__() -> _List[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> _Any:
    # The module in C++ is loaded on first use: a user who only starts the program does not wait for it.
    if name == "Error":
        from rematch.errors import Error
        return Error
    if name in __all__:
        from rematch import stages
        return getattr(stages, name)
    raise AttributeError(f"module 'rematch' has no attribute {name!r}")
