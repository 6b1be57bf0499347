"""Replaces this process by the program that the wheel brings."""

import importlib.util
import os
import sys
from importlib.metadata import requires, version
from pathlib import Path


def torch_here() -> str:
    """The release of the torch that this interpreter imports, without its build's name; "" = none."""
    if importlib.util.find_spec("torch") is None:
        return ""
    return version("torch").partition("+")[0]


def main() -> int:
    program = Path(__file__).parent / "bin" / "rematch"
    wanted = next(one.partition("==")[2] for one in requires("rematch") or [] if one.startswith("torch=="))
    found = torch_here()
    if found != wanted:
        print(f"error: torch {wanted} is needed\n"
              f"  where: {sys.executable}\n"
              f"  what:  {f'it has torch {found}' if found else 'it has no torch'}; rematch uses the libtorch of the wheel beside it, of that release\n"
              f"  fix:   pip install torch=={wanted}, or make a wheel of rematch for the torch that is there", file=sys.stderr)
        return 4
    # The interpreter that runs this is the one whose vLLM is meant, if it has one (vllm.python, docs/vllm.md).
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
