"""The program in the wheel, and the torch that it needs."""

import importlib.util
import os
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Dict, Optional

from rematch.errors import problem

# Absolute: the current directory may change, and Python may have found the package by a relative
# path.
_PACKAGES = Path(os.path.abspath(__file__)).parents[1]
PROGRAM = _PACKAGES / "rematch" / "bin" / "rematch"


def check_torch() -> None:
    """@throws Error (environment) unless torch is here in the release that the program needs"""
    ours = _distribution("rematch", _PACKAGES)
    needs = (ours.requires if ours else None) or []
    wanted = next((one.partition("==")[2] for one in needs if one.startswith("torch==")), "")
    if not wanted:
        raise problem(
            "environment",
            "this is no installed rematch",
            str(_PACKAGES),
            "pip knows of no package here that says which torch it needs",
            "install the wheel of rematch",
        )
    packages = _packages_of_torch()
    torch = _distribution("torch", packages) if packages else None
    found = torch.version.partition("+")[0] if torch else ""
    if found == wanted:
        return
    raise problem(
        "environment",
        f"torch {wanted} is needed",
        sys.executable,
        f"{f'it has torch {found}' if found else 'it has no torch'}; "
        "rematch needs the libtorch of exactly that release",
        f"pip install torch=={wanted}, or build a wheel of rematch for the installed torch",
    )


def environment() -> Dict[str, str]:
    """The variables with which the program finds the libraries of torch, also where torch lies in
    another directory than rematch does, as beside a notebook server's own packages.
    """
    packages = _packages_of_torch()
    if packages is None or packages == _PACKAGES:
        return dict(os.environ)
    paths = [str(packages / "torch/lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}


def _packages_of_torch() -> Optional[Path]:
    """The directory that has the installed torch in it."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return None
    return Path(os.path.abspath(torch.origin)).parents[1]


def _distribution(name: str, packages: Path) -> Optional[Distribution]:
    """What pip knows of a package: beside it, or where Python looks for packages."""
    return next(iter(distributions(name=name, path=[str(packages), *sys.path])), None)
