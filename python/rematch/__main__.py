"""Replaces this process by the program in the wheel."""

import ctypes
import importlib.util
import os
import signal
import sys
from importlib.metadata import requires, version
from pathlib import Path


def torch_here() -> str:
    """The version of the installed torch without its build suffix; "" = no torch."""
    if importlib.util.find_spec("torch") is None:
        return ""
    return version("torch").partition("+")[0]


def find_libraries(packages: Path) -> None:
    """Lets the program find the libraries of torch where torch lies in another directory than
    rematch does, as beside a notebook server's own packages.
    """
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None or Path(torch.origin).parents[1] == packages:
        return
    paths = [str(Path(torch.origin).parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, paths))


def end_with_parent() -> None:
    """Asks the system for SIGTERM, upon which a training saves, when the Python that started this
    process (rematch.program) is killed.
    """
    parent = os.environ.pop("REMATCH_ENDS_WITH", "")
    if not parent:
        return
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        sys.exit(128 + signal.SIGTERM)


def main() -> int:
    program = Path(__file__).parent / "bin" / "rematch"
    wanted = next(
        one.partition("==")[2] for one in requires("rematch") or [] if one.startswith("torch==")
    )
    found = torch_here()
    if found != wanted:
        print(
            f"error: torch {wanted} is needed\n"
            f"  where: {sys.executable}\n"
            f"  what:  {f'it has torch {found}' if found else 'it has no torch'}; "
            "rematch needs the libtorch of exactly that release\n"
            f"  fix:   pip install torch=={wanted}, "
            "or build a wheel of rematch for the installed torch",
            file=sys.stderr,
        )
        return 4
    find_libraries(Path(__file__).parents[1])
    end_with_parent()
    # The program uses the vLLM of this interpreter, if it has one (vllm.python, docs/vllm.md).
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
