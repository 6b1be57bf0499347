"""Compares answers in digits with answers in coord tokens: formats.py [--seeds 0 1 2]; the table of
docs/answer_formats.md.

Both formats start from the same random weights and the same tokenizer, in which every fixed piece
of either format is one token. Each learns simple scenes of tests/shapes for 2 600 steps (boxes
only: digits have no polygons), then hard scenes for 160 steps: stage 1, stage 1 with noise, stage
2. Everything runs on one thread; costs are processor time. About two hours on one core. What has a
result in demo/out/formats is not run again.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from experiments import print_table, rematch, run, train
from tokenizer import ASCII_PATTERN

ROOT = Path(__file__).resolve().parents[2]
OUT = Path("demo/out/formats")
REMATCH = "build/release/bin/rematch"
RUNS, WARMUP = OUT / "runs", "training.warmup_steps="
FORMATS = ("coord_tokens", "qwen_json")
LOSSES = {
    "coord_tokens": "  coord_soft_ce_w1: {enabled: true, target_sigma: 8.0}\n",
    "qwen_json": "",
}
REWRITE = [
    "custom.trainer_variant=rollout_matching_sft",
    "custom.extra.rollout_matching.target_policy=rewrite",
]
ARMS = {"stage 1": [], "stage 1 with noise": ["custom.coord_input_noise=12"], "stage 2": REWRITE}
SIMPLE_STEPS, HARD_STEPS = 2600, 160


def scenes(split, num_train):
    directory = OUT / split
    sizes = ("--split", split, "--num-train", num_train, "--num-val", 512, "--seed", 0)
    run(sys.executable, ROOT / "tests/shapes/make_scenes.py", directory, *sizes)
    for part in ("train", "val"):
        boxes = directory / f"boxes_{part}.jsonl"
        if not boxes.exists():
            run(REMATCH, "data", "boxes", directory / f"{part}.jsonl", "--out", boxes)


def config(answer_format, split):
    """A configuration of stage 1 on the scenes of a split."""
    path = OUT / f"{answer_format}_{split}.yaml"
    path.write_text(f"""global_max_length: 512
model: {{model: {OUT}/base, torch_dtype: float32}}
template: {{system: List the objects as JSON.}}
data: {{dataloader_num_workers: 1}}
custom:
  user_prompt: Find every shape.
  answer_format: {answer_format}
  train_jsonl: {OUT}/{split}/boxes_train.jsonl
  val_jsonl: {OUT}/{split}/boxes_val.jsonl
{LOSSES[answer_format]}  extra:
    rollout_matching: {{rollout_backend: native, max_new_tokens: 230}}
training:
  output_dir: {OUT}/runs
  per_device_train_batch_size: 24
  per_device_eval_batch_size: 64
  effective_batch_size: 24
  weight_decay: 0.01
  max_grad_norm: 1.0
  lr_scheduler_type: cosine
  save_strategy: "no"
  save_last_epoch: true
  save_only_model: true
  report_to: none
""")
    return path


def score(path, name, checkpoint):
    """Scores on the validation scenes, with the cost of training and of answering."""
    results = OUT / "runs" / f"{name}_eval" / "eval_results.json"
    if not results.exists():
        said = [f"model.model={checkpoint}", f"training.run_name={name}_eval"]
        seconds = rematch("eval", path, said)
        scores = json.loads(results.read_text())
        scores["ms_per_image"] = 1000 * seconds / scores["num_samples"]
        scores["tokens_per_answer"] = tokens_per_answer(checkpoint)
        results.write_text(json.dumps(scores))
    trained = checkpoint.parent / "seconds.json"
    return json.loads(results.read_text()) | {
        "seconds": json.loads(trained.read_text()) if trained.exists() else 0
    }


def tokens_per_answer(checkpoint):
    """Mean over the first 64 validation scenes; every piece of the tokenizer's pattern is one token
    here.
    """
    images = sorted((OUT / "hard/val").glob("*.png"))[:64]
    found = subprocess.run(
        [REMATCH, "predict", str(checkpoint), *map(str, images)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    texts = [json.loads(line)["text"] for line in found.splitlines()]
    return sum(len(re.findall(r"<\|coord_\d+\|>|" + ASCII_PATTERN, text)) for text in texts) / len(
        texts
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    OUT.mkdir(parents=True, exist_ok=True)
    run(sys.executable, ROOT / "dev/demo/make_base.py", OUT / "base", "--seed", 0)
    scenes("simple", 16000)
    scenes("hard", 3000)
    columns = []
    for answer_format in FORMATS:
        simple, hard = config(answer_format, "simple"), config(answer_format, "hard")
        base = train(simple, RUNS, f"{answer_format}_base", SIMPLE_STEPS, 2e-3, [WARMUP + "60"])
        before = score(hard, f"{answer_format}_before", base)
        columns.append((f"`{answer_format}`: before", [before]))
        for arm, settings in ARMS.items():
            runs = []
            for seed in args.seeds:
                name = f"{answer_format}_{arm.replace(' ', '_')}_{seed}"
                more = [f"model.model={base}", f"training.seed={seed}", *settings]
                checkpoint = train(hard, RUNS, name, HARD_STEPS, 1.5e-3, [WARMUP + "5", *more])
                runs.append(score(hard, name, checkpoint))
            columns.append((arm, runs))
    print_table(
        columns, ("tokens per answer", "tokens_per_answer"), ("ms per image", "ms_per_image")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
