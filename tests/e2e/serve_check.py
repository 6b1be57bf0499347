#!/usr/bin/env python3
"""Runs the Python of docs/serve.md on scenes of the demonstration and compares its answers with
those of `rematch predict`.

usage: serve_check.py REMATCH
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NUM_SCENES = 6


def main():
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("transformers is not installed (run scripts/setup --oracles)")
        return 77
    model = ROOT / "tests/shapes/model"
    snippet = re.search(
        r"```python\n(.*?)```", (ROOT / "docs/serve.md").read_text(encoding="utf-8"), re.DOTALL
    ).group(1)
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        subprocess.run(
            [
                sys.executable,
                ROOT / "tests/shapes/make_scenes.py",
                here / "scenes",
                "--split",
                "simple",
                "--num-train",
                "1",
                "--num-val",
                str(NUM_SCENES),
                "--seed",
                "3",
            ],
            check=True,
            capture_output=True,
        )
        records = [
            json.loads(line)
            for line in (here / "scenes/val.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        images = [str(here / "scenes" / record["images"][0]) for record in records]
        found = subprocess.run(
            [sys.argv[1], "predict", model, *images], check=True, capture_output=True, text=True
        ).stdout
        ours = [json.loads(line)["text"] for line in found.splitlines()]
        (here / "ask.py").write_text(snippet, encoding="utf-8")
        for image, answer in zip(images, ours, strict=True):
            theirs = subprocess.run(
                [sys.executable, here / "ask.py", model, image],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            theirs = theirs.removesuffix("<|im_end|>").strip()
            if theirs != answer:
                print(f"{image}\n  rematch      {answer}\n  transformers {theirs}")
                return 1
    print(f"{NUM_SCENES} equal answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
