"""Runs the demonstration's comparisons over several seeds and prints their tables: experiments.py SUITE [--seeds 0 1 2]

SUITE is one of
  columns    docs/demo.md's table: stage 2, stage 1 instead, stage 1 with noise, and `append`
  ablation   docs/targets.md's table: one knob of `rewrite` changed at a time
  small      few scenes with and without augmentation: 100, 300 and 3000 of them
  unordered  the same scenes whose truth has no order, and the row for sorting it (name a checkpoint taught so with --model)

A variant is a configuration of configs/demo/ and some --set; each has as many steps and images. What has a result in demo/out/experiments is not
run again. Scores are those of `rematch eval` on the validation scenes, which chose nothing.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

from report import ROWS

OUT = Path("demo/out/experiments")
KEYS = "custom.extra.rollout_matching."
STAGE_2, STAGE_1 = "configs/demo/stage2.yaml", "configs/demo/stage1_more.yaml"
NOISE = "custom.coord_input_noise=12"
RANDOM = "custom.object_ordering=random"

AUGMENT = ["data.augment.hflip=0.5", "data.augment.crop=0.6", "data.augment.color=0.3"]

SUITES = {
    "columns": [("stage 2", STAGE_2, []), ("stage 1 instead", STAGE_1, []), ("stage 1 with noise", STAGE_1, [NOISE]),
                ("`append`", STAGE_2, [KEYS + "target_policy=append"])],
    "ablation": [("`rewrite`", STAGE_2, []),
                 ("`rewrite_order: rollout`", STAGE_2, [KEYS + "rewrite_order=rollout"]),
                 ("`incomplete_rollouts: empty`", STAGE_2, [KEYS + "incomplete_rollouts=empty"]),
                 ("`rollout_share: 0.5`", STAGE_2, [KEYS + "rollout_share=0.5"])],
    "small": [(f"{count} scenes" + (", augmented" if augment else ""), STAGE_2, [f"custom.train_sample_limit={count}", *augment])
              for count in (100, 300, 3000) for augment in ([], AUGMENT)],
    "unordered": [("stage 1 again", STAGE_1, [RANDOM]), ("stage 1 with noise", STAGE_1, [RANDOM, NOISE]), ("`rewrite`", STAGE_2, [RANDOM]),
                  ("stage 1, truth sorted", STAGE_1, [])],
}


def run(config, name, overrides):
    """Trains and scores one variant. @return eval_results.json"""
    directory = OUT / "runs" / name
    scores = directory / "eval_results.json"
    if not scores.exists():
        said = [f"training.output_dir={OUT}/runs", f"training.run_name={name}", "training.report_to=none", "training.eval_strategy=no",
                "training.eval_on_start=false"]
        sets = [word for item in overrides + said for word in ("--set", item)]
        subprocess.run(["build/release/bin/rematch", "train", config, *sets], check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        checkpoint = max(directory.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
        # Everybody is scored by the same file: the evaluation does not know how a checkpoint was trained.
        evaluation = [f"model.model={checkpoint}", *said]
        subprocess.run(["build/release/bin/rematch", "eval", STAGE_2, *(word for item in evaluation for word in ("--set", item))], check=True,
                       stdout=subprocess.DEVNULL, stderr=sys.stderr)
    return json.loads(scores.read_text(encoding="utf-8"))


def cell(values):
    mean = sum(values) / len(values)
    return f"{mean:.3f}" + (f" ({', '.join(f'{value:.3f}' for value in values)})" if len(values) > 1 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--model", default="demo/model", help="the checkpoint all variants start from")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="for every variant")
    args = parser.parse_args()
    # Another start or another setting is another experiment.
    tag = hashlib.sha1(repr((args.model, args.overrides)).encode()).hexdigest()[:8]
    columns = []
    for title, config, overrides in SUITES[args.suite]:
        plain = "".join(letter if letter.isalnum() else "_" for letter in title)
        columns.append((title, [run(config, f"{args.suite}_{plain}_{seed}_{tag}", [f"model.model={args.model}", f"training.seed={seed}", *overrides,
                                                                           *args.overrides]) for seed in args.seeds]))
        print(f"{title}: F1 {cell([scores['eval_rollout_f1_iou50'] for scores in columns[-1][1]])}", file=sys.stderr)
    print("| | " + " | ".join(title for title, _ in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for label, key in ROWS:
        if not key.endswith("_objects"):
            print(f"| {label} | " + " | ".join(cell([scores[key] for scores in runs]) for _, runs in columns) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
