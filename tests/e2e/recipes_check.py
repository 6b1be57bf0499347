#!/usr/bin/env python3
"""Runs the commands of the recipes (docs/small_data.md, order.md, lora_24gb.md) like
readme_check.py those of README: as they stand, with a small checkpoint, four photographs and two
steps.

usage: recipes_check.py REMATCH
"""

import re
import sys
import tempfile
from pathlib import Path

from readme_check import BLOCK, ROOT, plain_commands, prepare, run_all

RECIPES = {
    "small_data.md": ("sheet.png", "few.html", "drawn/0000_astronaut.png"),
    "order.md": ("output/one/last", "output/two/last"),
    "lora_24gb.md": (
        "output/lora/eval_results.json",
        "drawn/0000_astronaut.png",
        "merged/config.json",
    ),
}


def main():
    rematch = Path(sys.argv[1]).resolve()
    for page, left_behind in RECIPES.items():
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        blocks = [one for one in BLOCK.findall(text) if re.search("^rematch ", one, re.MULTILINE)]
        assert len(blocks) == 1, f"{page} has {len(blocks)} blocks with commands of rematch"
        commands = plain_commands(blocks[0])
        with tempfile.TemporaryDirectory() as name:
            work, tools = Path(name) / "work", Path(name) / "tools"
            work.mkdir()
            prepare(work, tools)
            run_all(commands, work, tools, rematch)
            missing = [path for path in left_behind if not (work / path).exists()]
            assert not missing, f"the commands of {page} left no {missing}"
        print(f"{page}: {len(commands)} commands", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
