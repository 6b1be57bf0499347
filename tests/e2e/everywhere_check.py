#!/usr/bin/env python3
"""Four pictures learned by heart with LoRA: adapter and merged checkpoint give the truth, letter
for letter, in this program, in transformers and in vLLM (docs/serve.md).

usage: everywhere_check.py REMATCH

Exit 77 (skipped) without transformers. vLLM is left out, with the reason, without .venv-vllm.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from stock_check import ROOT, Work

MODEL = ROOT / "tests/shapes/model"
VLLM_PYTHON = ROOT / ".venv-vllm/bin/python"
SETTINGS = {
    "training.max_steps": 100,
    "training.effective_batch_size": 4,
    "training.learning_rate": 1e-2,
    "training.run_name": "heart",
    "training.eval_strategy": "no",
    "training.save_strategy": "no",
    "training.report_to": "none",
    "tuner.train_type": "lora",
    "tuner.lora_rank": 16,
    "tuner.lora_dropout": 0,
    # Coordinates of these scenes that the model has never met have rows that were never trained.
    "tuner.trainable_token_indices": "[coord_tokens]",
}


def sets(values):
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def learn(work):
    """Trains the adapter on four scenes of shapes and merges it; the records."""
    lines = (work.here / work.scenes("hard")).read_text(encoding="utf-8").splitlines()[:4]
    (work.here / "hard/four.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = "hard/four.jsonl"
    work.run("init", MODEL, data, "--val", data, "--stage1", "--out", "heart.yaml")
    work.run("train", "heart.yaml", *sets(SETTINGS))
    work.run("merge", "output/heart", "--out", "merged")
    return [json.loads(line) for line in lines]


def objects_of(answer):
    return sorted((one["desc"], one.get("bbox_2d", one.get("poly"))) for one in answer["objects"])


def predicted(work, model, images, backend):
    lines = work.run("predict", model, *images, "--backend", backend).splitlines()
    return [json.loads(line) for line in lines]


def by_transformers(work, images):
    page = (ROOT / "docs/serve.md").read_text(encoding="utf-8")
    (work.here / "ask.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    return [
        subprocess.run(
            [sys.executable, work.here / "ask.py", work.here / "merged", image],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for image in images
    ]


def by_vllm(work):
    merged = {
        "model.model": "merged",
        "custom.extra.rollout_matching.rollout_backend": "vllm",
        "custom.extra.rollout_matching.temperature": 0,
        "custom.extra.rollout_matching.vllm.python": VLLM_PYTHON,
        "custom.extra.rollout_matching.vllm.tensor_parallel_size": 1,
    }
    work.run("rollout", "heart.yaml", *sets(merged), "--out", "vllm.jsonl")
    lines = (work.here / "vllm.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


def main():
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("skipped: no transformers (scripts/setup --oracles)")
        return 77
    with tempfile.TemporaryDirectory() as name:
        work = Work(sys.argv[1], Path(name))
        records = learn(work)
        images = [work.here / "hard" / record["images"][0] for record in records]
        truth = [objects_of(record) for record in records]
        before = [objects_of(one) for one in predicted(work, MODEL, images, "hf")]
        assert before != truth, "nothing is left to learn"
        found = {
            f"{what}, {backend}": predicted(work, model, images, backend)
            for what, model in (("adapter", "output/heart"), ("merged", "merged"))
            for backend in ("hf", "native")
        }
        learned = [objects_of(one) for one in found["adapter, hf"]]
        assert learned == truth, f"{learned}\n{truth}"
        texts = {where: [one["text"] for one in answers] for where, answers in found.items()}
        texts["merged, transformers"] = by_transformers(work, images)
        if VLLM_PYTHON.exists():
            texts["merged, vllm"] = by_vllm(work)
        else:
            print("vLLM is left out: no .venv-vllm (scripts/setup-vllm)")
        for where, answers in texts.items():
            answers = [text.strip().removesuffix("<|im_end|>").strip() for text in answers]
            assert answers == texts["adapter, hf"], f"{where}: {answers}\n{texts['adapter, hf']}"
            print(f"{where}: {len(answers)} answers are the truth")
    return 0


if __name__ == "__main__":
    sys.exit(main())
