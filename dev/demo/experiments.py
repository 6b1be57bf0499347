"""Runs the demonstration's comparisons over several seeds and prints their tables: experiments.py
SUITE [--seeds 0 1 2]

SUITE is one of
  story      docs/demo.md's table: stage 1, stage 1 with noise and stage 2 at equal steps and at
  equal cost, and the row for sorting the truth
  ablation   docs/targets.md's table: one knob of `rewrite` changed at a time
  rate       docs/targets.md: stage 2 at the peak learning rate of stage 1, and at a fifth of it
  small      docs/small_data.md's table: 100, 300 and 3000 pages, plain, with augmentation and with
  noise (stage 1, truth sorted)

A variant is a configuration of configs/demo/ and some --set. Each runs on one thread, and its cost
is the processor time of its training, so other work
on the machine changes no number. What has a result in demo/out/experiments is not run again. Scores
are those of `rematch eval` on the validation
pages, which chose nothing.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from report import ROWS

OUT = Path("demo/out/experiments")
KEYS = "custom.extra.rollout_matching."
STAGE_2, STAGE_1 = "configs/demo/stage2.yaml", "configs/demo/stage1_more.yaml"
NOISE = "custom.coord_input_noise=12"

EQUAL_COST = (
    "training.max_steps=150"  # of stage 1: about as much processor time as 120 steps of stage 2
)
SORTED = "custom.object_ordering=sorted"

FEW_PAGES_STEPS = "training.max_steps=200"  # of 24 pages: 100 of them are seen 48 times
AUGMENT = ["data.augment.crop=0.6", "data.augment.color=0.3"]  # no mirror: a mirrored digit is none

SUITES = {
    "story": [
        ("stage 1", STAGE_1, []),
        ("stage 1 with noise", STAGE_1, [NOISE]),
        ("stage 2, `rewrite`", STAGE_2, []),
        ("stage 1, equal cost", STAGE_1, [EQUAL_COST]),
        ("with noise, equal cost", STAGE_1, [NOISE, EQUAL_COST]),
        ("stage 1, truth sorted", STAGE_1, [SORTED]),
    ],
    "ablation": [
        ("`rewrite`", STAGE_2, []),
        ("`rewrite_order: truth`", STAGE_2, [KEYS + "rewrite_order=truth"]),
        ("`incomplete_rollouts: empty`", STAGE_2, [KEYS + "incomplete_rollouts=empty"]),
        ("`rollout_share: 0.5`", STAGE_2, [KEYS + "rollout_share=0.5"]),
        ("`append`", STAGE_2, [KEYS + "target_policy=append"]),
    ],
    "rate": [
        ("stage 1's rate", STAGE_2, []),
        ("a fifth", STAGE_2, ["training.learning_rate=2e-4"]),
    ],
    "small": [
        (
            f"{count} pages{what}",
            STAGE_1,
            [SORTED, FEW_PAGES_STEPS, f"custom.train_sample_limit={count}", *more],
        )
        for count in (100, 300, 3000)
        for what, more in (("", []), (", augmented", AUGMENT), (", noise", [NOISE]))
    ],
}


def processor_seconds():
    """User and system time of all programs that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def score(name, model):
    """Scores of a checkpoint that is not trained here."""
    path = OUT / "runs" / name / "eval_results.json"
    if not path.exists():
        said = [
            f"training.output_dir={OUT}/runs",
            f"training.run_name={name}",
            f"model.model={model}",
        ]
        subprocess.run(
            [
                "build/release/bin/rematch",
                "eval",
                STAGE_2,
                *(word for item in said for word in ("--set", item)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr,
        )
    return json.loads(path.read_text(encoding="utf-8")) | {"seconds": 0}


def run(config, name, overrides):
    """Trains and scores one variant. @return eval_results.json"""
    directory = OUT / "runs" / name
    scores = directory / "eval_results.json"
    if not scores.exists():
        said = [
            f"training.output_dir={OUT}/runs",
            f"training.run_name={name}",
            "training.report_to=none",
            "training.eval_strategy=no",
            "training.eval_on_start=false",
        ]
        sets = [word for item in overrides + said for word in ("--set", item)]
        used = processor_seconds()
        subprocess.run(
            ["build/release/bin/rematch", "train", config, *sets],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr,
        )
        seconds = processor_seconds() - used
        checkpoint = max(
            directory.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1])
        )
        # Everybody is scored by the same file: the evaluation does not know how a checkpoint was
        # trained.
        evaluation = [f"model.model={checkpoint}", *said]
        subprocess.run(
            [
                "build/release/bin/rematch",
                "eval",
                STAGE_2,
                *(word for item in evaluation for word in ("--set", item)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr,
        )
        (directory / "seconds.json").write_text(json.dumps(seconds))
    return json.loads(scores.read_text(encoding="utf-8")) | {
        "seconds": json.loads((directory / "seconds.json").read_text())
    }


def cell(values):
    mean = sum(values) / len(values)
    digits = 0 if mean > 5 else 3  # seconds
    return f"{mean:.{digits}f}" + (
        f" ({', '.join(f'{value:.{digits}f}' for value in values)})" if len(values) > 1 else ""
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--model", default="demo/model", help="the checkpoint all variants start from"
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for every variant",
    )
    args = parser.parse_args()
    # Another start or another setting is another experiment.
    tag = hashlib.sha1(repr((args.model, args.overrides)).encode()).hexdigest()[:8]
    os.environ["OMP_NUM_THREADS"] = "1"
    columns = [("before", [score(f"{args.suite}_before_{tag}", args.model)])]
    for title, config, overrides in SUITES[args.suite]:
        plain = "".join(letter if letter.isalnum() else "_" for letter in title)
        columns.append(
            (
                title,
                [
                    run(
                        config,
                        f"{args.suite}_{plain}_{seed}_{tag}",
                        [
                            f"model.model={args.model}",
                            f"training.seed={seed}",
                            *overrides,
                            *args.overrides,
                        ],
                    )
                    for seed in args.seeds
                ],
            )
        )
        print(
            f"{title}: F1 {cell([scores['eval_rollout_f1_iou50'] for scores in columns[-1][1]])}",
            file=sys.stderr,
        )
    print("| | " + " | ".join(title for title, _ in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for label, key in (*ROWS, ("seconds of training", "seconds")):
        if not key.endswith("_objects"):
            print(
                f"| {label} | "
                + " | ".join(cell([scores[key] for scores in runs]) for _, runs in columns)
                + " |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
