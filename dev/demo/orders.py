"""Teaches checkpoints that answer in one order truths in another: orders.py [--bases NAME …]
[--seeds 0 1 2] [--truths sorted own own_noise own_rewrite own_insert]; the table of docs/order.md.

Bases begin as tests/shapes/model, which knows simple scenes in coord tokens and was taught a sorted
truth. They learn to answer in plain digits (`qwen_json`) for 600 steps, each in an order of its
own; a name that ends in _strong learns 1,400 steps more. coord_left_to_right learns that order in
coord tokens for 150 steps; coord_top_left is tests/shapes/model itself. Rows then train a base on
hard scenes for 160 steps, with the truth in several orders; `own` asks the base for its order and
takes fewer steps, so that it costs as much, and stage 2 fewer still. Everything runs on one thread;
costs are processor time. What has a result in demo/out/formats is not run again.

Every record is read once in a run, so a file can hold the truth in any order: it is written so that
the shuffle of `custom.object_ordering: random`, which depends on seed and line, gives that order.
"""

import argparse
import json
import os
import shutil
import sys

from experiments import print_table, run, train
from formats import HARD_STEPS, OUT, REWRITE, ROOT, WARMUP, config, scenes, score
from safetensors.torch import load_file, save_file

SIMPLE_STEPS, STRONG_STEPS, COORD_STEPS, BATCH = 600, 1400, 150, 24
# Training beside the order of the truth, and the steps that cost as much as HARD_STEPS of `sorted`.
ARMS = {
    "own": ([], 156),
    "own_noise": (["custom.coord_input_noise=12"], 156),
    "own_rewrite": (REWRITE, 128),
    "own_insert": ([*REWRITE, "custom.extra.rollout_matching.rewrite_order=own"], 128),
}
STRONG = "_strong"
MASK = (1 << 64) - 1


def top_left(one):
    return one["bbox_2d"][1], one["bbox_2d"][0]


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


def taught(split, name, truth, steps, seed, more=()):
    """Settings that teach the truth in an order of ORDERS, or as `object_ordering` says."""
    order, ordering = (ORDERS[truth], "random") if truth in ORDERS else (ORDERS["random"], truth)
    path = write_truth(split, name, order, steps * BATCH, seed)
    return [
        f"custom.train_jsonl={path}",
        f"custom.object_ordering={ordering}",
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
    return name.removeprefix("coord_").removesuffix(STRONG)


def make_base(name):
    if name == "coord_top_left":
        return ROOT / "tests/shapes/model"
    path, steps, rate, known, seed = config(format_of(name), "simple"), SIMPLE_STEPS, 2e-3, None, 0
    if format_of(name) == "coord_tokens":
        steps, known = COORD_STEPS, ROOT / "tests/shapes/model"
    elif name.endswith(STRONG):
        steps, rate, seed = STRONG_STEPS, 1.5e-3, 1
        known = make_base(name.removesuffix(STRONG))
    more = [WARMUP + "30", f"model.model={known or make_known()}"]
    settings = taught("simple", name, order_of(name), steps, seed, more)
    base = train(path, OUT / "runs", f"{name}_base", steps, rate, settings)
    scores = score(path, f"{name}_base_simple", base)
    print(f"{name}: F1 on simple scenes {scores['eval_rollout_f1_iou50']:.3f}", file=sys.stderr)
    return base


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    digits = ["left_to_right", "by_name", "top_left", "by_area"]
    bases = [*digits, *(name + STRONG for name in digits), "coord_left_to_right", "coord_top_left"]
    parser.add_argument("--bases", nargs="+", choices=bases, default=bases)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--truths", nargs="+", default=["sorted", "own"])
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
        for truth in args.truths:
            runs = []
            training, steps = ARMS.get(truth, ([], HARD_STEPS))
            for seed in args.seeds:
                more = [f"model.model={base}", WARMUP + "5", *training]
                order = truth.partition("_")[0] if truth in ARMS else truth
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
