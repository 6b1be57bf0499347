"""Executes docs/first_run.ipynb in an empty directory and looks at what its cells gave.

usage: notebook_check.py PROGRAM [OUT]     OUT: keeps the executed notebook

Exit 77 (skipped) where nbclient or ipykernel is missing (scripts/setup --oracles).
"""

import os
import sys
import tempfile
from pathlib import Path

from pretend_install import ROOT, install

try:
    import ipykernel  # noqa: F401
    import nbclient
    import nbformat
except ImportError as error:
    print(f"skipped: {error}; scripts/setup --oracles installs it")
    sys.exit(77)


def texts(cell):
    """What a cell printed and its value."""
    return "".join(
        output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
        for output in cell.outputs
    )


def main():
    source = ROOT / "docs/first_run.ipynb"
    notebook = nbformat.read(source, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code), "clear the outputs before committing"
    with tempfile.TemporaryDirectory(prefix="rematch_notebook_") as name:
        place = Path(name)
        (place / "installed").mkdir()
        os.environ.update(install(place / "installed", sys.argv[1]), NO_COLOR="1")
        work = place / "checkout"
        (work / "docs").mkdir(parents=True)
        for part in ("tests", "demo"):
            (work / part).symlink_to(ROOT / part)
        nbclient.NotebookClient(
            notebook, timeout=600, resources={"metadata": {"path": str(work / "docs")}}
        ).execute()
    if len(sys.argv) > 2:
        nbformat.write(notebook, sys.argv[2])
    printed = "\n".join(texts(cell) for cell in code)
    for line in printed.splitlines():
        assert not line.startswith("error:"), line
    for expected in ("4 images, 10 boxes", "'cat'", "'saucer'"):
        assert expected in printed, f"{expected!r} is missing in:\n{printed}"
    pictures = sum(
        "image/png" in output.get("data", {}) for cell in code for output in cell.outputs
    )
    assert pictures == 2, f"{pictures} pictures, expected the sheet and the answer"
    shown = "\n".join(
        output["data"].get("text/html", "")
        for cell in code
        for output in cell.outputs
        if "data" in output
    )
    for expected in (
        "Written by `rematch init`",
        "<b>step 60</b>",  # the live plot, at its end
        "label F1 @ IoU 0.5 1<",
        "F1 @ IoU 0.5               1.000",
        "<iframe srcdoc=",
    ):
        assert expected in shown, f"{expected!r} is missing in:\n{shown[:4000]}"
    print(f"{len(code)} cells, {pictures} pictures")


if __name__ == "__main__":
    main()
