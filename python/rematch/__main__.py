"""Replaces this process by the program that the wheel brings."""

import importlib.util
import os
import sys
from pathlib import Path


def main() -> int:
    program = Path(__file__).parent / "bin" / "rematch"
    if importlib.util.find_spec("torch") is None:
        print("error: torch is not installed\n"
              f"  where: {sys.executable}\n"
              "  what:  rematch uses the libtorch of the torch wheel beside it\n"
              "  fix:   pip install torch==2.13.0", file=sys.stderr)
        return 4
    # The interpreter that runs this is the one whose vLLM is meant, if it has one (vllm.python, docs/vllm.md).
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
