"""Replaces this process by the program in the wheel."""

import importlib.util
import os
import sys
from importlib.metadata import requires, version
from pathlib import Path


def torch_here() -> str:
    """The version of the installed torch without its build suffix; "" = no torch."""
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
              f"  what:  {f'it has torch {found}' if found else 'it has no torch'}; rematch needs the libtorch of exactly that release\n"
              f"  fix:   pip install torch=={wanted}, or build a wheel of rematch for the installed torch", file=sys.stderr)
        return 4
    # The program uses the vLLM of this interpreter, if it has one (vllm.python, docs/vllm.md).
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
