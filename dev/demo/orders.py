"""Teaches checkpoints that answer in one order truths in another: orders.py [--bases NAME …]
[--seeds 0 1 2]; the table of docs/order.md.

Bases begin as tests/shapes/model, which knows simple scenes in coord tokens and was taught a sorted
truth. They learn to answer in plain digits (`qwen_json`) for 600 steps, each in an order of its
own; coord_left_to_right learns that order in coord tokens for 150. Rows then train a base on hard
scenes for 160 steps, with the truth in several orders; "own" is learned from the base's answers to
300 training pictures, and takes fewer steps, so that it costs as much. Everything runs on one
thread; costs are processor time. What has a result in demo/out/formats is not run again.

Every record is read once in a run, so a file can hold the truth in any order: it is written so that
the shuffle of `custom.object_ordering: random`, which depends on seed and line, gives that order.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from itertools import islice

from experiments import print_table, run, train
from fit_order import fit_order, sort_by, top_left
from formats import HARD_STEPS, OUT, REMATCH, ROOT, WARMUP, config, scenes, score
from safetensors.torch import load_file, save_file

SIMPLE_STEPS, COORD_STEPS, BATCH, NUM_ASKED, OWN_STEPS = 600, 150, 24, 300, 156
MASK = (1 << 64) - 1


def area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def by_name(objects):
    """The leftmost object, the others of its name from the left, then the leftmost of the rest."""
    left = {}
    for one in objects:
        left[one["desc"]] = min(left.get(one["desc"], (1000, "")), (one["bbox_2d"][0], one["desc"]))
    return sorted(objects, key=lambda one: (left[one["desc"]], one["bbox_2d"][0], top_left(one)))


ORDERS = {
    "left_to_right": lambda objects: sorted(
        objects, key=lambda one: (one["bbox_2d"][0], top_left(one))
    ),
    "by_name": by_name,
    "top_left": lambda objects: sorted(objects, key=top_left),
    "by_area": lambda objects: sorted(
        objects, key=lambda one: (-area(one["bbox_2d"]), top_left(one))
    ),
    "random": lambda objects: objects,  # the file's, which has none
}


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def shuffle(seed, sample_id, count):
    """The permutation of base/random.h that orders a sample's objects in epoch 0."""
    key = 0x52656D61746368
    for part in (0x6F626A65637473, seed, 0, sample_id):
        key = mix(key ^ mix(part))
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        bits = mix(key ^ mix((i + 0xD1B54A32D192ED03) & MASK))
        j = bits * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return order


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_truth(split, name, order, num_records, seed):
    """Records of a split, again from the first after the last, whose objects training shows in an
    order.
    """
    path = OUT / split / f"{name}_{seed}.jsonl"
    records = read(OUT / split / "boxes_train.jsonl")
    with open(path, "w", encoding="utf-8") as lines:
        for sample_id in range(num_records):
            record = dict(records[sample_id % len(records)])
            objects = order(record["objects"])
            shown = [None] * len(objects)
            for place, index in enumerate(shuffle(seed, sample_id, len(objects))):
                shown[index] = objects[place]
            lines.write(json.dumps(record | {"objects": shown}) + "\n")
    return path


def taught(split, name, order, steps, seed, more=()):
    path = write_truth(split, name, order, steps * BATCH, seed)
    return [
        f"custom.train_jsonl={path}",
        "custom.object_ordering=random",
        f"training.seed={seed}",
        *more,
    ]


def tokens_of(directory):
    """Token → id."""
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    return tokenizer["model"]["vocab"] | {
        one["content"]: one["id"] for one in tokenizer["added_tokens"]
    }


def make_known():
    """The untrained checkpoint, whose tokenizer has whole pieces of answers in digits, with the
    weights of tests/shapes/model, by token where they belong to one.
    """
    known, model, directory = ROOT / "tests/shapes/model", OUT / "base", OUT / "known"
    if (directory / "model.safetensors").exists():
        return directory
    shutil.copytree(model, directory, dirs_exist_ok=True)
    weights = load_file(model / "model.safetensors")
    old, new = tokens_of(known), tokens_of(model)
    for name, tensor in load_file(known / "model.safetensors").items():
        if tensor.shape == weights[name].shape:
            weights[name] = tensor.float()
        else:
            for token in old.keys() & new.keys():
                weights[name][new[token]] = tensor[old[token]].float()
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def format_of(name):
    return "coord_tokens" if name.startswith("coord_") else "qwen_json"


def order_of(name):
    return ORDERS[name.removeprefix("coord_")]


def make_base(name):
    path, steps, known = config(format_of(name), "simple"), SIMPLE_STEPS, make_known()
    if format_of(name) == "coord_tokens":
        steps, known = COORD_STEPS, ROOT / "tests/shapes/model"
    settings = taught(
        "simple", name, order_of(name), steps, 0, [WARMUP + "30", f"model.model={known}"]
    )
    base = train(path, OUT / "runs", f"{name}_base", steps, 2e-3, settings)
    scores = score(path, f"{name}_base_simple", base)
    print(f"{name}: F1 on simple scenes {scores['eval_rollout_f1_iou50']:.3f}", file=sys.stderr)
    return base


def answers_of(base, name):
    """The objects of the base's answers to the first training pictures."""
    path = OUT / f"{name}_answers.jsonl"
    if not path.exists():
        images = [
            str(OUT / "hard" / record["images"][0])
            for record in islice(read(OUT / "hard/boxes_train.jsonl"), NUM_ASKED)
        ]
        found = subprocess.run(
            [REMATCH, "predict", str(base), *images], check=True, capture_output=True, text=True
        )
        path.write_text(found.stdout)
    return [
        [{"desc": one["desc"], "bbox_2d": one["bbox_2d"]} for one in answer["objects"]]
        for answer in read(path)
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    bases = [name for name in ORDERS if name != "random"] + ["coord_left_to_right"]
    parser.add_argument("--bases", nargs="+", choices=bases, default=bases)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    OUT.mkdir(parents=True, exist_ok=True)
    if not (OUT / "base").exists():
        run(sys.executable, ROOT / "dev/demo/make_base.py", OUT / "base", "--seed", 0)
    scenes("simple", 16000)
    scenes("hard", 3000)
    for name in args.bases:
        base = make_base(name)
        hard = config(format_of(name), "hard")
        columns = [(f"{name}: before", [score(hard, f"{name}_before", base)])]
        fitted = fit_order(answers_of(base, name))
        print(f"{name}: {fitted[1:]}", file=sys.stderr)
        if not args.seeds:
            continue
        truths = {
            "top_left": ORDERS["top_left"],
            "own": lambda objects, fitted=fitted: sort_by(fitted, objects),
            "random": ORDERS["random"],
            name: order_of(name),
        }
        for truth, order in truths.items():
            runs = []
            steps = OWN_STEPS if truth == "own" else HARD_STEPS
            for seed in args.seeds:
                more = [f"model.model={base}", WARMUP + "5"]
                settings = taught("hard", f"{name}_{truth}", order, HARD_STEPS, seed, more)
                arm = f"{name}_{truth}_{seed}"
                checkpoint = train(hard, OUT / "runs", arm, steps, 1.5e-3, settings)
                runs.append(score(hard, arm, checkpoint))
                print(f"{arm}: {runs[-1]['eval_rollout_f1_labels_iou50']:.3f}", file=sys.stderr)
            columns.append((truth, runs))
        print_table(columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
