"""An installation of rematch without a wheel: the package of this checkout with a built program,
and what pip would know of it.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def install(directory, program):
    """Puts it into the directory. @return the environment in which `import rematch` and `rematch`
    on the PATH find it
    """
    package = Path(directory) / "rematch"
    package.mkdir()
    for source in (ROOT / "python/rematch").iterdir():
        if source.is_file():
            (package / source.name).symlink_to(source)
    (package / "bin").mkdir()
    (package / "bin/rematch").symlink_to(Path(program).resolve())
    known = Path(directory) / "rematch-0.1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rematch\nVersion: 0.1.0\nRequires-Dist: torch==2.13.0\n"
    )
    starter = Path(directory) / "bin/rematch"
    starter.parent.mkdir()
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rematch "$@"\n')
    starter.chmod(0o755)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(directory), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        "PATH": f"{starter.parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
    }
