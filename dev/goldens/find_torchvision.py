"""Finds a torchvision: that of this Python, or the one of .venv-vllm (scripts/setup-vllm), which is
appended to the search path.
"""

import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]


def find_torchvision():
    """Call it before transformers is imported. @return whether torchvision can be imported now"""
    for packages in [None, *ROOT.glob(".venv-vllm/lib/python3*/site-packages")]:
        if packages:
            sys.path.append(str(packages))
        if importlib.util.find_spec("torchvision") is None:
            continue
        if importlib.util.find_spec("rematch_torchvision_ops"):
            # A build for another torch lacks its operators.
            import rematch_torchvision_ops  # noqa: F401
        import torchvision  # noqa: F401

        return True
    return False
