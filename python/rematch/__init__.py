"""Rematch, rollout-matching SFT of vision-language models.

The program is `rematch` on PATH; python -m rematch runs it too. In Python: predict() finds objects in images, show() draws them, and
read_log() reads the log of a run. For trainers in Python the stages of the training loop are functions on plain lists and dicts: parse,
match, segment, pack and evaluate. They need no torch and no model weights.
"""

from importlib import import_module as _import_module
from importlib.metadata import PackageNotFoundError as _NotFound
from importlib.metadata import version as _version
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

if TYPE_CHECKING:
    from rematch.errors import Error as Error
    from rematch.logs import read_log as read_log
    from rematch.pictures import show as show
    from rematch.prediction import predict as predict
    from rematch.stages import evaluate as evaluate, match as match, pack as pack, parse as parse, segment as segment

try:
    __version__ = _version("rematch")
except _NotFound:
    raise ImportError("rematch is not installed, only its sources are here: run scripts/wheel, then pip install dist/rematch-*.whl") from None
__all__ = ["Error", "evaluate", "match", "pack", "parse", "predict", "read_log", "segment", "show"]
_HOMES = {"Error": "errors", "predict": "prediction", "read_log": "logs", "show": "pictures"}  # of the others: stages


def __dir__() -> _List[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> _Any:
    # The module in C++ is loaded on first use: a user who only starts the program does not wait for it.
    if name in __all__:
        return getattr(_import_module("rematch." + _HOMES.get(name, "stages")), name)
    raise AttributeError(f"module 'rematch' has no attribute {name!r}")
