"""Rematch, rollout-matching SFT. The program is `rematch` on PATH; python -m rematch runs it too."""

from importlib.metadata import version

__version__ = version("rematch")
