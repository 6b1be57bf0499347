"""Replaces this process by a program that gets SIGTERM, upon which a training saves, when the
Python that started it (rematch.program) is killed.

usage: start.py PID_OF_THAT_PYTHON PROGRAM ARGUMENT…

It is run as a file and imports Python's own modules only, so that neither the current directory
nor a path can give it others.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        sys.exit(128 + signal.SIGTERM)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
