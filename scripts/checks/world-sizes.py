#!/usr/bin/env python3
"""Trains the same windows on 1, 2 and 4 ranks with training.exact_ranks and compares the bits:
weights, optimizer state and log after STEPS steps must be those of one process with as much more
accumulation.

usage: scripts/check world-sizes [--steps 20] [--only NAME]      some ten minutes on two free cores

Four runs on 1 x 4, 2 x 2 (zero 0, zero 1) and 4 x 1 (zero 2) end at the same bits: LoRA with
dropout and two M-steps, all weights with `hf` and with `native` rollouts, stage 1 packed as a
stream. So does the demonstration on 1 x 2 and 2 x 1 (zero 1 in buckets of 1 MiB, zero 0). Where
each rank packs its own samples rows differ, and the weights are compared with the norm of each
tensor.
"""

import argparse
import array
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("REMATCH_BUILD_DIR", ROOT / "build/release")) / "bin/rematch"
STAGE_2 = (
    "custom: {{trainer_variant: rollout_matching_sft, extra: {{rollout_matching: "
    "{{rollout_backend: {backend}, max_new_tokens: 8, temperature: {t}}}}}}}"
)
PACKED = (
    "global_max_length: 4096\ntraining: {{packing: true, learning_rate: 1.0e-4}}\ncustom: "
    "{{trainer_variant: rollout_matching_sft, extra: {{rollout_matching: {{rollout_backend: "
    "hf, max_new_tokens: 8, post_rollout_pack_scope: {scope}}}}}}}"
)
RUNS = {
    "lora, dropout, m_steps "
    "2": "tuner: {train_type: lora, lora_rank: 3, lora_alpha: 6, lora_dropout: 0.1, "
    "target_modules: [all-linear]}\n"
    "custom: {trainer_variant: rollout_matching_sft, extra: {rollout_matching: {rollout_backend: "
    "hf, max_new_tokens: 8,"
    " rollout_buffer: {enabled: true, m_steps: 2}}}}",
    "hf": STAGE_2.format(backend="hf", t=0),
    "native": STAGE_2.format(backend="native", t=0.7),
    "stage 1, stream "
    "packing": "custom: {trainer_variant: sft}\ntraining: {packing: true, packing_drop_last: "
    "false}",
    "packed windows": PACKED.format(scope="window"),
    "the demonstration": "",
}
NEAR = {"packed windows": 1e-6}  # of each tensor's norm; the others are compared by their bits
WORLDS = [(1, 4, 0), (2, 2, 0), (2, 2, 1), (4, 1, 2)]  # ranks, accumulation, zero stage
DEMO_WORLDS = [(1, 2, 0), (2, 1, 1), (2, 1, 0)]


def run(command, directory, **variables):
    done = subprocess.run(
        command,
        cwd=directory,
        env=dict(os.environ, OMP_NUM_THREADS="1", **variables),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ends with exit code {done.returncode}:\n{done.stderr}")


def start_of(world):
    torchrun = [str(ROOT / ".venv/bin/torchrun"), "--no-python", "--nproc-per-node", str(world[0])]
    return [*(torchrun if world[0] > 1 else []), str(PROGRAM)]


def settings(pairs):
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def train(directory, lines, steps, world):
    _, accumulation, zero = world
    golden = ROOT / "tests/golden"
    (directory / "base.yaml").write_text(f"""
global_max_length: 1024
model: {{model: {golden}/model/tiny_tied, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: {steps}, per_device_train_batch_size: 1,
  per_device_eval_batch_size: 1,
  learning_rate: 1.0e-3, logging_steps: 1, eval_strategy: steps, eval_steps: {max(1, steps // 2)},
  report_to: none}}
custom: {{train_jsonl: {golden}/e2e/train.jsonl, val_jsonl: {golden}/e2e/val.jsonl,
  val_sample_limit: 5}}
""")
    (directory / "run.yaml").write_text("extends: base.yaml\n" + lines + "\n")
    run(
        [*start_of(world), "train", "run.yaml"]
        + settings(
            {
                "training.gradient_accumulation_steps": accumulation,
                "training.zero_stage": zero,
                "training.exact_ranks": "true",
            }
        ),
        directory,
    )


def train_demo(directory, _, steps, world):
    """tests/shapes/stage2.yaml in micro-batches of half its size, with evaluations and a
    checkpoint on the way.
    """
    scenes = directory / "scenes"
    run(
        [
            str(ROOT / ".venv/bin/python"),
            str(ROOT / "tests/shapes/make_scenes.py"),
            str(scenes),
            "--split",
            "hard",
            "--num-train",
            "480",
            "--num-val",
            "64",
            "--seed",
            "0",
        ],
        ROOT,
    )
    half = max(1, steps // 2)
    run(
        [*start_of(world), "train", "tests/shapes/stage2.yaml"]
        + settings(
            {
                "custom.train_jsonl": scenes / "train.jsonl",
                "custom.val_jsonl": scenes / "val.jsonl",
                "training.output_dir": directory / "out",
                "training.run_name": "run",
                "training.max_steps": steps,
                "training.eval_steps": half,
                "training.save_strategy": "steps",
                "training.save_steps": half,
                "training.save_only_model": "false",
                "training.per_device_train_batch_size": 12,
                "training.zero_stage": world[2],
                "training.exact_ranks": "true",
                "training.report_to": "none",
                "training.ddp_bucket_cap_mb": 1 if world[2] else 25,
            }
        ),
        ROOT,
    )


def outcome(directory, steps):
    """Every tensor by its name, whichever rank's file holds it, and the log without what a clock
    decides.
    """
    tensors = {}
    for path in sorted((directory / f"out/run/checkpoint-{steps}").rglob("*.safetensors")):
        kind = re.match("[a-z_]+", path.name).group()
        if kind == "segments":
            continue
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[kind, name] = data[8 + size + begin : 8 + size + end]
    lines = []
    for line in (directory / "out/run/logging.jsonl").read_text().splitlines():
        values = json.loads(line)
        lines.append(
            {
                k: v
                for k, v in values.items()
                if not k.startswith("time/") and "_per_s" not in k and k != "eval_runtime"
            }
        )
    return tensors, lines


def furthest(found, expected):
    """The largest distance of a weight tensor from the expected one, as a share of its norm."""
    worst = 0.0
    for key in (key for key in expected if key[0] == "model"):
        ours, theirs = array.array("f", found[key]), array.array("f", expected[key])
        norm = math.dist(theirs, [0.0] * len(theirs))
        worst = max(worst, math.dist(ours, theirs) / norm if norm else 0.0)
    return worst


def verdict(found, first, near):
    """Whether the outcomes are the same, in words too."""
    if near is not None and found[0].keys() == first[0].keys():
        distance = furthest(found[0], first[0])
        return distance <= near, f"weights within {distance:.1e} of each tensor's norm"
    others = [key for key in first[0] if found[0].get(key) != first[0][key]] + [
        key for key in found[0] if key not in first[0]
    ]
    if found[0] and not others and found[1] == first[1]:
        return True, f"the same bits, {len(found[0])} tensors"
    return (
        False,
        f"OTHER: {len(others)} of {len(found[0])} tensors, "
        f"{'the same' if found[1] == first[1] else 'another'} log",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", choices=RUNS)
    arguments = parser.parse_args()
    failures = 0
    for name, lines in RUNS.items():
        if arguments.only not in (None, name):
            continue
        is_demo, first = name == "the demonstration", None
        for world in DEMO_WORLDS if is_demo else WORLDS:
            with tempfile.TemporaryDirectory(prefix="check-world-sizes-") as directory:
                (train_demo if is_demo else train)(
                    pathlib.Path(directory), lines, arguments.steps, world
                )
                found = outcome(pathlib.Path(directory), arguments.steps)
            first = first or found
            same, what = verdict(found, first, NEAR.get(name))
            failures += not same
            print(f"{name:26} {world[0]} x {world[1]}, zero {world[2]} {what}", flush=True)
    sys.exit(f"{failures} differ" if failures else 0)


if __name__ == "__main__":
    main()
