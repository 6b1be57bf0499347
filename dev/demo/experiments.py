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
is the processor time of its training, so other work on the machine changes no number. What has a
result in demo/out/experiments is not run again. Scores are those of `rematch eval` on the
validation pages, which chose nothing.
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

# Steps of stage 1 that take about as much processor time as 120 of stage 2.
EQUAL_COST = "training.max_steps=150"
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


def run(*command):
    """@return processor seconds, user and system, of the command"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        list(map(str, command)), check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rematch(command, config, settings):
    """`rematch COMMAND CONFIG` with settings KEY=VALUE. @return processor seconds"""
    sets = [word for setting in settings for word in ("--set", setting)]
    return run("build/release/bin/rematch", command, config, *sets)


def train(config, runs, name, steps, rate, settings):
    """Trains unless that was done. @return the checkpoint in the directory `runs`/`name`, which has
    the processor seconds in seconds.json"""
    checkpoint = runs / name / f"checkpoint-{steps}"
    if not checkpoint.exists():
        said = {"run_name": name, "max_steps": steps, "learning_rate": rate}
        said = [f"training.{key}={value}" for key, value in said.items()]
        seconds = rematch("train", config, said + settings)
        (runs / name / "seconds.json").write_text(json.dumps(seconds))
    return checkpoint


def scores_of(name, model, config=None, overrides=()):
    """Scores of a variant: `model` trained by `config`, or as it is without one. All are scored by
    the same file: the evaluation does not know how a checkpoint was trained.
    """
    directory = OUT / "runs" / name
    scores, cost = directory / "eval_results.json", directory / "seconds.json"
    if not scores.exists():
        said = [f"training.output_dir={OUT}/runs", f"training.run_name={name}"]
        seconds = 0
        if config:
            quiet = ("report_to=none", "eval_strategy=no", "eval_on_start=false")
            more = [f"model.model={model}", *overrides, *(f"training.{one}" for one in quiet)]
            seconds = rematch("train", config, said + more)
            checkpoints = directory.glob("checkpoint-*")
            model = max(checkpoints, key=lambda path: int(path.name.split("-")[1]))
        rematch("eval", STAGE_2, [*said, f"model.model={model}"])
        cost.write_text(json.dumps(seconds))
    return json.loads(scores.read_text(encoding="utf-8")) | {
        "seconds": json.loads(cost.read_text())
    }


def cell(values):
    """The mean, and the values that it is of."""
    mean = sum(values) / len(values)
    digits = 0 if mean > 5 else 3  # seconds
    shown = ", ".join(f"{value:.{digits}f}" for value in values)
    return f"{mean:.{digits}f}" + (f" ({shown})" if len(values) > 1 else "")


def print_table(columns, *more_rows):
    """@param columns  (title, [scores of a seed, …]), …"""
    print("| | " + " | ".join(title for title, _ in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    rows = [row for row in ROWS if not row[1].endswith("_objects")]
    for label, key in [*rows, *more_rows, ("seconds of training", "seconds")]:
        cells = (cell([scores[key] for scores in runs]) for _, runs in columns)
        print(f"| {label} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--model", default="demo/model", help="where all variants start from")
    args = parser.parse_args()
    # Another start is another experiment.
    tag = hashlib.sha1(args.model.encode()).hexdigest()[:8]
    os.environ["OMP_NUM_THREADS"] = "1"
    columns = [("before", [scores_of(f"{args.suite}_before_{tag}", args.model)])]
    for title, config, overrides in SUITES[args.suite]:
        plain = "".join(letter if letter.isalnum() else "_" for letter in title)
        runs = [
            scores_of(
                f"{args.suite}_{plain}_{seed}_{tag}",
                args.model,
                config,
                [f"training.seed={seed}", *overrides],
            )
            for seed in args.seeds
        ]
        columns.append((title, runs))
        f1 = cell([scores["eval_rollout_f1_iou50"] for scores in runs])
        print(f"{title}: F1 {f1}", file=sys.stderr)
    print_table(columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
