"""Replaces this process by the program in the wheel."""

import os
import sys

from rematch.errors import Error
from rematch.installed import PROGRAM, check_torch, environment


def main() -> int:
    try:
        check_torch()
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    # The program uses the vLLM of this interpreter, if it has one (vllm.python, docs/vllm.md).
    os.execve(PROGRAM, [str(PROGRAM), *sys.argv[1:]], environment())


if __name__ == "__main__":
    sys.exit(main())
