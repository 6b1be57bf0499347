"""The lines of a run's log, as the run writes them."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List


class LogFollower:
    """Gives each line of `logging.jsonl` once, without those that a resumed run had before."""

    def __init__(self, directory: Path) -> None:
        """Starts at the end of the log of a run's directory, which the run has opened."""
        self._path = directory / "logging.jsonl"
        self._position = os.stat(self._path).st_size
        self._rest = b""

    def new_rows(self) -> List[Dict[str, Any]]:
        """The lines since the last call; a line that is still being written comes later."""
        try:
            with open(self._path, "rb") as log:
                log.seek(self._position)
                text = log.read()
        except FileNotFoundError:  # somebody moved it: the program ends, and says so
            return []
        self._position += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        return [json.loads(line) for line in lines]
