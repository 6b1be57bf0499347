"""Rematch, rollout-matching SFT of vision-language models.

The program is `rematch` on PATH; python -m rematch runs it too. In Python: init(), train(), eval(),
probe(), report(), merge() and predict() run its commands, live_plot() draws a training in a
notebook, show() draws objects, and read_log() reads the log of a run. For trainers in Python the
stages of the training loop are functions on plain lists and dicts: parse, match, segment, pack and
evaluate. They need no torch and no model weights.
"""

from importlib import import_module as _import_module
from importlib.metadata import PackageNotFoundError as _NotFound
from importlib.metadata import version as _version
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

if TYPE_CHECKING:
    from rematch.commands import (
        eval as eval,
        init as init,
        merge as merge,
        probe as probe,
        report as report,
    )
    from rematch.curves import live_plot as live_plot
    from rematch.errors import Error as Error
    from rematch.logs import read_log as read_log
    from rematch.pictures import show as show
    from rematch.prediction import predict as predict
    from rematch.stages import (
        evaluate as evaluate,
        match as match,
        pack as pack,
        parse as parse,
        segment as segment,
    )
    from rematch.training import train as train

try:
    __version__ = _version("rematch")
except _NotFound:
    raise ImportError(
        "rematch is not installed, only its sources are here: run scripts/wheel, then pip install "
        "dist/rematch-*.whl"
    ) from None
_HOMES = {
    "commands": ("eval", "init", "merge", "probe", "report"),
    "curves": ("live_plot",),
    "errors": ("Error",),
    "logs": ("read_log",),
    "pictures": ("show",),
    "prediction": ("predict",),
    "stages": ("evaluate", "match", "pack", "parse", "segment"),
    "training": ("train",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


def __dir__() -> _List[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> _Any:
    # The module in C++ is loaded on first use: a user who only starts the program does not wait for
    # it.
    if name in _HOME_OF:
        return getattr(_import_module(f"rematch.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'rematch' has no attribute {name!r}")
