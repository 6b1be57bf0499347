#!/usr/bin/env python3
"""Runs README's commands, from the download of a stock checkpoint to a report, with a small
checkpoint and four photographs.

usage: readme_check.py REMATCH

The commands run as they stand in README, except that trainings are short (FEWER_STEPS) and `hf`
copies a stand-in instead of downloading.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stock_check import ROOT, make_stock

BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)
FEWER_STEPS = (("max_steps=200", "max_steps=2"), ("checkpoint-200", "checkpoint-2"))
DOWNLOAD = """#!/usr/bin/env bash
if [[ $1 != download || $2 != Qwen/Qwen3-VL-* || $3 != --local-dir || $# != 4 ]]; then
  echo "hf: unexpected arguments: $*" >&2
  exit 2
fi
cp -r "$STAND_IN" "$4"
"""
LEFT_BEHIND = (
    "sheet.png",
    "report.html",
    "drawn/0000_astronaut.png",
    "output/stage1/checkpoint-2",
    "output/stage2/checkpoint-2",
)


def plain_commands(block):
    """The commands of a block without comments; a line that ends in a backslash continues."""
    lines = [
        " ".join(line.split("#")[0].split()) for line in block.replace("\\\n", " ").splitlines()
    ]
    return [line for line in lines if line]


def commands_of(readme):
    """The commands of every block that runs the program, in order; the first block is a shorter
    version of the second.
    """
    blocks = [
        block for block in BLOCK.findall(readme) if re.search(r"^rematch ", block, re.MULTILINE)
    ]
    assert len(blocks) == 3, f"README has {len(blocks)} blocks with commands of rematch"
    lines = [plain_commands(block) for block in blocks]
    missing = [line for line in lines[0] if line not in lines[1]]
    assert not missing, f"README's first block has commands that its second lacks: {missing}"
    return lines[1] + lines[2]


def prepare(work, tools):
    """The photographs, their COCO files and an `hf` that downloads nothing."""
    first_run = ROOT / "tests/golden/first_run"
    shutil.copytree(first_run / "photos", work / "photos")
    annotations = json.loads((first_run / "instances_train.json").read_text())
    for name in ("train.json", "val.json", "all.json"):
        (work / name).write_text(json.dumps(annotations))
    tools.mkdir()
    (tools / "hf").write_text(DOWNLOAD)
    (tools / "hf").chmod(0o755)
    make_stock(tools / "stock")


def run_all(commands, work, tools, rematch):
    """Runs them in `work`, trainings with fewer steps; ends the program at the first that fails."""
    environment = dict(
        os.environ,
        PATH=f"{tools}:{rematch.parent}:{os.environ['PATH']}",
        STAND_IN=str(tools / "stock"),
        NO_COLOR="1",
    )
    for command in commands:
        for long, short in FEWER_STEPS:
            command = command.replace(long, short)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"$ {command}\nexit {done.returncode}\n{done.stdout}{done.stderr}")


def check_report(page):
    """The report compares the runs and shows pictures of answers."""
    data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page, re.DOTALL).group(1))
    assert not data["note"], f"the report compares nothing: {data['note']}"
    assert "before → " in data["headline"]["about"], data["headline"]
    assert any(number["before"] for number in data["headline"]["numbers"]), data["headline"]
    assert data["gallery"], "the report has no picture"


def main():
    rematch = Path(sys.argv[1]).resolve()
    commands = commands_of((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        work, tools = Path(name) / "work", Path(name) / "tools"
        work.mkdir()
        prepare(work, tools)
        run_all(commands, work, tools, rematch)
        missing = [path for path in LEFT_BEHIND if not (work / path).exists()]
        assert not missing, f"the commands left no {missing}"
        check_report((work / "report.html").read_text(encoding="utf-8"))
    print(f"{len(commands)} commands")
    return 0


if __name__ == "__main__":
    sys.exit(main())
