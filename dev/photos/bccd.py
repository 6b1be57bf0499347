"""Trains a small model on photographs of blood cells, from random weights: bccd.py BCCD [--steps N]
[--seeds 0]

BCCD is a local copy of github.com/Shenggan/BCCD_Dataset (364 photos, MIT; its directories
Annotations, ImageSets and JPEGImages); nothing is downloaded. The photos are made 320 pixels wide
and imported with prompts that list classes. A Qwen3-VL of 3 M parameters (dev/demo/make_base.py)
learns them for N steps: the base, with mirrors, quarter turns and colours, and sorted truth. Then a
quarter of these steps more: stage 1, with noise, with absent classes, and stage 2. All are scored
on the 87 photos of val, whose prompts list all three classes. Costs are processor time on one
thread. What has a result in demo/out/bccd is not run again.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "dev/demo"))
from experiments import rematch, run, train  # noqa: E402

OUT = Path("demo/out/bccd")
WIDTH = 320
REMATCH = "build/release/bin/rematch"
PICTURES = ["hflip=0.5", "vflip=0.5", "rot90=0.75", "color=0.2"]
ARMS = {
    "stage 1": [],
    "with noise": ["custom.coord_input_noise=12"],
    "with absent classes": ["custom.absent_classes.share=0.5"],
    "stage 2, `rewrite`": [
        "custom.trainer_variant=rollout_matching_sft",
        "custom.extra.rollout_matching.target_policy=rewrite",
    ],
}
ROWS = (
    ("F1 @ IoU 0.5", "eval_rollout_f1_iou50"),
    ("label F1 @ IoU 0.5", "eval_rollout_f1_labels_iou50"),
    ("COCO AP", "coco_ap"),
    ("absent classes answered", "eval_rollout_absent_answered"),
    ("repeated predictions", "eval_rollout_duplicates"),
    ("malformed rate", "eval_rollout_parse_malformed_rate"),
    ("boxes a second", "boxes_per_second"),
    ("seconds of training", "seconds"),
)


def make_records(source):
    """train.jsonl lists what a photo shows, val.jsonl all classes."""
    small = OUT / "small"
    if (OUT / "val.jsonl").exists():
        return
    for split, negatives in (("train", 0), ("val", 0.67)):
        words = ["--prompt-classes", *(["--negatives", negatives] if negatives else [])]
        run(REMATCH, "data", "from-voc", source, "--out", OUT / split, *words)
        lines = []
        for line in (OUT / split / f"{split}.jsonl").read_text().splitlines():
            record = json.loads(line)
            path = OUT / split / record["images"][0]
            image = Image.open(path).convert("RGB")
            height = round(image.height * WIDTH / image.width)
            target = small / "JPEGImages" / (path.stem + ".png")
            target.parent.mkdir(parents=True, exist_ok=True)
            image.resize((WIDTH, height), Image.Resampling.BICUBIC).save(target)
            record |= {"images": [str(target.relative_to(OUT))], "width": WIDTH, "height": height}
            lines.append(json.dumps(record) + "\n")
        (OUT / f"{split}.jsonl").write_text("".join(lines))


def config():
    path = OUT / "bccd.yaml"
    path.write_text(f"""global_max_length: 1024
model: {{model: {OUT}/random, torch_dtype: float32}}
template: {{system: List the objects as JSON.}}
data: {{dataloader_num_workers: 1, augment: {{{", ".join(PICTURES).replace("=", ": ")}}}}}
custom:
  train_jsonl: {OUT}/train.jsonl
  val_jsonl: {OUT}/val.jsonl
  coord_soft_ce_w1: {{enabled: true, target_sigma: 8.0}}
  extra:
    rollout_matching: {{rollout_backend: native, max_new_tokens: 420}}
training:
  output_dir: {OUT}/runs
  per_device_train_batch_size: 8
  per_device_eval_batch_size: 29
  effective_batch_size: 8
  weight_decay: 0.01
  max_grad_norm: 1.0
  warmup_steps: 20
  lr_scheduler_type: cosine
  save_strategy: "no"
  save_last_epoch: true
  save_only_model: true
  report_to: none
""")
    return path


def score(path, name, checkpoint):
    results = OUT / "runs" / f"{name}_eval" / "eval_results.json"
    if not results.exists():
        rematch("eval", path, [f"model.model={checkpoint}", f"training.run_name={name}_eval"])
    scores = json.loads(results.read_text())
    scores["boxes_per_second"] = scores["eval_rollout_pred_objects"] / scores["eval_runtime"]
    return scores | {"seconds": json.loads((checkpoint.parent / "seconds.json").read_text())}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, metavar="BCCD")
    parser.add_argument("--steps", type=int, default=1200, help="of the base; others: a quarter")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    OUT.mkdir(parents=True, exist_ok=True)
    make_records(args.source.resolve())
    run(sys.executable, ROOT / "dev/demo/make_base.py", OUT / "random", "--seed", 0)
    path = config()
    base = train(path, OUT / "runs", f"base_{args.steps}", args.steps, 2e-3, [])
    columns = [("before", [score(path, f"before_{args.steps}", base)])]
    for arm, settings in ARMS.items():
        runs = []
        for seed in args.seeds:
            name = "".join(letter if letter.isalnum() else "_" for letter in arm)
            name += f"_{args.steps}_{seed}"
            more = [f"model.model={base}", f"training.seed={seed}", *settings]
            checkpoint = train(path, OUT / "runs", name, args.steps // 4, 1e-3, more)
            runs.append(score(path, name, checkpoint))
        columns.append((arm, runs))
    print("| | " + " | ".join(label for label, _ in ROWS) + " |")
    print("|---" * (len(ROWS) + 1) + "|")
    for title, runs in columns:
        cells = [sum(scores.get(key, 0) for scores in runs) / len(runs) for _, key in ROWS]
        print(f"| {title} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
