#!/usr/bin/env python3
"""A stock checkpoint from "before" to serving, without new tokens: eval, init, stage 1, stage 2,
predict, and transformers on the result.

usage: stock_check.py REMATCH
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Work:
    """Runs the program in a temporary directory."""

    def __init__(self, rematch, here):
        self.rematch, self.here = Path(rematch).resolve(), here

    def run(self, *arguments):
        done = subprocess.run(
            [self.rematch, *map(str, arguments)], cwd=self.here, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(
                f"rematch {' '.join(map(str, arguments))}: exit {done.returncode}\n"
                f"{done.stderr[-2000:]}"
            )
        return done.stdout

    def f1(self, model, records):
        self.run("eval", model, records)
        run = Path(model).parent.name or model  # of a checkpoint
        return json.loads((self.here / "output" / run / "eval_results.json").read_text())[
            "eval_rollout_f1"
        ]

    def scenes(self, name):
        """Four scenes with boxes only; the path of their JSONL."""
        subprocess.run(
            [
                sys.executable,
                ROOT / "tests/shapes/make_scenes.py",
                self.here / name,
                "--split",
                name,
                "--num-train",
                "4",
                "--num-val",
                "1",
                "--seed",
                "3",
            ],
            check=True,
            capture_output=True,
        )
        self.run("data", "boxes", f"{name}/train.jsonl", "--out", f"{name}/boxes.jsonl")
        return f"{name}/boxes.jsonl"

    def train(self, model, records, name, steps, *options):
        self.run("init", model, records, "--out", f"{name}.yaml", *options)
        assert "answer_format: qwen_json" in (self.here / f"{name}.yaml").read_text(), (
            "init does not see the stock format"
        )
        sets = [
            f"training.max_steps={steps}",
            f"training.run_name={name}",
            "training.learning_rate=2e-3",
            "training.effective_batch_size=4",
            "training.per_device_train_batch_size=4",
            "training.save_strategy=steps",
            f"training.save_steps={steps}",
        ]
        self.run("train", f"{name}.yaml", *(part for one in sets for part in ("--set", one)))
        return f"output/{name}/checkpoint-{steps}"


def make_stock(directory):
    """The demonstration's checkpoint as one that never heard of coord tokens."""
    shutil.copytree(ROOT / "tests/shapes/model", directory)
    (directory / "rematch_prompt.json").unlink()
    path = directory / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    tokenizer["added_tokens"] = [
        token for token in tokenizer["added_tokens"] if not token["content"].startswith("<|coord_")
    ]
    path.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def compare_with_transformers(work, model, images):
    found = work.run("predict", model, *images)  # no flag: the checkpoint names its format
    ours = [json.loads(line)["text"] for line in found.splitlines()]
    assert all(text.startswith("```json") for text in ours), ours
    try:
        import transformers  # noqa: F401
    except ImportError:
        print(
            "transformers is not installed (run scripts/setup --oracles): its answers are not "
            "compared"
        )
        return
    snippet = re.search(
        r"```python\n(.*?)```", (ROOT / "docs/serve.md").read_text(encoding="utf-8"), re.DOTALL
    ).group(1)
    (work.here / "ask.py").write_text(snippet, encoding="utf-8")
    for image, answer in zip(images, ours, strict=True):
        theirs = subprocess.run(
            [sys.executable, work.here / "ask.py", work.here / model, image],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        theirs = theirs.strip().removesuffix("<|im_end|>").strip()
        assert theirs == answer, f"{image}\n  rematch      {answer}\n  transformers {theirs}"
    print(f"transformers gives the same {len(images)} answers")


def main():
    with tempfile.TemporaryDirectory() as name:
        work = Work(sys.argv[1], Path(name))
        make_stock(work.here / "stock")
        simple, hard = work.scenes("simple"), work.scenes("hard")

        before = work.f1("stock", simple)
        stage1 = work.train("stock", simple, "stage1", 120, "--stage1")
        after = work.f1(stage1, simple)
        print(f"stage 1, four scenes: F1 {before:.3f} -> {after:.3f}")
        assert after > 0.9, "a small checkpoint learns four images in digits"

        hard_before = work.f1(stage1, hard)
        stage2 = work.train(stage1, hard, "stage2", 40)
        hard_after = work.f1(stage2, hard)
        print(f"stage 2, four harder scenes: F1 {hard_before:.3f} -> {hard_after:.3f}")
        assert hard_after > hard_before + 0.1, "stage 2 improves on harder scenes"

        images = [
            work.here / "simple" / json.loads(line)["images"][0]
            for line in (work.here / simple).read_text().splitlines()[:2]
        ]
        compare_with_transformers(work, stage1, images)
    return 0


if __name__ == "__main__":
    sys.exit(main())
