"""Measures absent classes in prompts on drawn scenes: absent.py [--seeds 0 1 2]
(docs/absent_classes.md; its table is of photographs, dev/photos/photos.py listed).

The checkpoint tests/shapes/model, which knows simple scenes in coord tokens, first learns that a
prompt lists the classes of its picture (80 steps): the base. Each arm then trains it on 2,000 other
simple scenes, whose prompts list the classes that they show: stage 1, with `custom.absent_classes`
at several shares, and stage 2 with them. They are scored on 192 scenes whose prompts list as many
absent classes as present ones, and on 48 scenes without an object. Everything runs on one thread;
costs are processor time. What has a result in demo/out/absent is not run again.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

from experiments import rematch, run, train

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shapes"))
from make_scenes import COLOURS, SHAPES, draw_background  # noqa: E402

OUT = Path("demo/out/absent")
RUNS = OUT / "runs"
CLASSES = sorted(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
NUM_TRAIN, NUM_VAL, NUM_EMPTY = 2000, 192, 48
BASE_STEPS, STEPS, STAGE_2_STEPS = 80, 80, 60  # a step of stage 2 costs a third more
REWRITE = [
    "custom.trainer_variant=rollout_matching_sft",
    "custom.extra.rollout_matching.target_policy=rewrite",
]


def absent(share, most=4):
    return [f"custom.absent_classes.share={share}", f"custom.absent_classes.most={most}"]


ARMS = {
    "stage 1": [],
    "+ absent classes, .25": absent(0.25),
    "+ absent classes, .5": absent(0.5),
    "+ absent classes, 1": absent(1),
    "stage 2, `rewrite`": REWRITE,
    "stage 2 + absent classes, 1": REWRITE + absent(1),
}


def prompt_of(names, rng):
    rng.shuffle(names)
    return f"Find every shape. [{', '.join(names)}]"


def classes_of(record):
    return sorted({entry["desc"] for entry in record["objects"]})


def write_lists(records, path, negatives):
    """Gives every record a prompt that lists its classes and as many absent ones as `negatives`
    times their number; without objects four absent ones.
    """
    with path.open("w") as lines:
        for index, record in enumerate(records):
            rng = random.Random(f"{path.name}/{index}")
            names = classes_of(record)
            others = [name for name in CLASSES if name not in names]
            names += rng.sample(others, negatives * len(names) or (0 if names else 4))
            lines.write(json.dumps(record | {"prompt": prompt_of(names, rng)}) + "\n")


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def make_data():
    if (OUT / "val_lists.jsonl").exists():
        return
    counts = ("--num-train", 2 * NUM_TRAIN, "--num-val", NUM_VAL, "--seed", 0)
    run(sys.executable, ROOT / "tests/shapes/make_scenes.py", OUT, "--split", "simple", *counts)
    train = read(OUT / "train.jsonl")
    write_lists(train[:NUM_TRAIN], OUT / "base_lists.jsonl", 0)
    write_lists(train[NUM_TRAIN:], OUT / "train_lists.jsonl", 0)
    empty = []
    (OUT / "empty").mkdir(exist_ok=True)
    for index in range(NUM_EMPTY):
        rng = random.Random(f"empty/{index}")
        name = f"empty/{index:05d}.png"
        draw_background(rng, (128, 128), clutter=False).save(OUT / name)
        empty.append({"images": [name], "width": 128, "height": 128, "objects": []})
    write_lists(read(OUT / "val.jsonl") + empty, OUT / "val_lists.jsonl", 1)


def config():
    path = OUT / "absent.yaml"
    path.write_text(f"""extends: {ROOT}/tests/shapes/common.yaml
model: {{model: tests/shapes/model}}
custom:
  train_jsonl: {OUT}/train_lists.jsonl
  val_jsonl: {OUT}/val_lists.jsonl
training: {{output_dir: {OUT}/runs, warmup_steps: 5, report_to: none}}
""")
    return path


def false_boxes(directory):
    """Shares by hand, from the answers that can be read: what `rematch eval` says too."""
    samples = next((directory / "eval").glob("*.samples.jsonl"))
    records = read(OUT / "val_lists.jsonl")
    asked = answered = present = missed = empty = empty_answered = 0
    for record, sample in zip(records, read(samples), strict=True):
        listed = set(record["prompt"].split("[")[1].rstrip("]").split(", "))
        true, found = (
            set(classes_of({"objects": sample[key]})) for key in ("ground_truth", "predictions")
        )
        present += len(true)
        missed += len(true - found)
        if sample["status"] != "complete" and not found:
            continue
        asked += len(listed - true)
        answered += len((listed - true) & found)
        empty += not true
        empty_answered += not true and bool(found)
    return {
        "absent": answered / asked,
        "empty": empty_answered / empty if empty else None,
        "missed": missed / present,
    }


def score(path, name, checkpoint, settings=()):
    directory = OUT / "runs" / f"{name}_eval"
    results = directory / "eval_results.json"
    if not results.exists():
        said = [f"model.model={checkpoint}", f"training.run_name={name}_eval", *settings]
        rematch("eval", path, said)
    trained = checkpoint.parent / "seconds.json"
    seconds = json.loads(trained.read_text()) if trained.exists() else 0
    return json.loads(results.read_text()) | false_boxes(directory) | {"seconds": seconds}


ROWS = (
    ("F1 @ IoU 0.5", "eval_rollout_f1_iou50"),
    ("label F1 @ IoU 0.5", "eval_rollout_f1_labels_iou50"),
    ("COCO AP", "coco_ap"),
    ("absent classes answered", "absent"),
    ("empty pictures answered", "empty"),
    ("present classes missed", "missed"),
    ("repeated predictions", "eval_rollout_duplicates"),
    ("malformed rate", "eval_rollout_parse_malformed_rate"),
    ("seconds of training", "seconds"),
)


def print_table(columns):
    print("| | " + " | ".join(label for label, _ in ROWS) + " |")
    print("|---" * (len(ROWS) + 1) + "|")
    for title, runs in columns:
        cells = []
        for _, key in ROWS:
            values = [scores[key] for scores in runs if scores[key] is not None]
            digits = 0 if key == "seconds" else 3
            cells.append(f"{sum(values) / len(values):.{digits}f}" if values else "–")
            if len(values) > 1 and key in ("absent", "eval_rollout_f1_iou50"):
                cells[-1] += " (" + ", ".join(f"{value:.3f}" for value in values) + ")"
        print(f"| {title} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    OUT.mkdir(parents=True, exist_ok=True)
    make_data()
    path = config()
    simple = [f"custom.train_jsonl={OUT}/base_lists.jsonl"]
    base = train(path, RUNS, "base", BASE_STEPS, 1e-3, simple)
    columns = [("before", [score(path, "before", base)])]
    runs = {arm: [] for arm in ARMS}
    for seed in args.seeds:
        for arm, settings in ARMS.items():
            name = "".join(letter if letter.isalnum() else "_" for letter in arm) + f"_{seed}"
            more = [f"model.model={base}", f"training.seed={seed}", *settings]
            steps = STAGE_2_STEPS if arm.startswith("stage 2") else STEPS
            checkpoint = train(path, RUNS, name, steps, 1e-3, more)
            runs[arm].append(score(path, name, checkpoint))
            print(arm, seed, {key: runs[arm][-1][key] for _, key in ROWS}, file=sys.stderr)
    print_table(columns + list(runs.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
