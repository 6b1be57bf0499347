"""Rematch, rollout-matching SFT of vision-language models.

The program is `rematch` on PATH; python -m rematch runs it too. For trainers in Python the stages of its loop are functions on plain lists
and dicts: parse, match, segment, pack and evaluate. They need no torch and no model weights.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rematch.errors import Error as Error
    from rematch.stages import evaluate as evaluate, match as match, pack as pack, parse as parse, segment as segment

__version__ = version("rematch")
__all__ = ["Error", "evaluate", "match", "pack", "parse", "segment"]


def __getattr__(name: str) -> Any:
    # The module in C++ is loaded when it is first asked for: who only starts the program does not wait for it.
    if name == "Error":
        from rematch.errors import Error
        return Error
    if name in __all__:
        from rematch import stages
        return getattr(stages, name)
    raise AttributeError(f"module 'rematch' has no attribute {name!r}")
