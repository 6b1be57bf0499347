"""The lines of a run's log, as the run writes them."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List


class LogFollower:
    """Gives each line of `logging.jsonl` once. The lines that are there at first, of an earlier
    run, are left out.

    Args:
        directory: of the run, which has opened its log.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "logging.jsonl"
        file = os.stat(self._path)
        self._inode, self._earlier = file.st_ino, file.st_size
        self._num_read = 0
        self._rest = b""

    def new_rows(self) -> List[Dict[str, Any]]:
        """The lines since the last call; a line that is still being written comes later."""
        try:
            with open(self._path, "rb") as log:
                # The first save replaces the log by one without the lines of an earlier run.
                is_replaced = os.fstat(log.fileno()).st_ino != self._inode
                log.seek(self._num_read + (0 if is_replaced else self._earlier))
                text = log.read()
        except FileNotFoundError:  # somebody moved it: the program ends, and says so
            return []
        self._num_read += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        return [json.loads(line) for line in lines]
