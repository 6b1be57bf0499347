#!/usr/bin/env python3
"""Holds two builds of the program against each other: the same weights to the bit, the same log
lines but for times.

usage: same_bits.py OLD_REMATCH NEW_REMATCH [CASE …]     run in the checkout, with .venv's python;
about four minutes on two cores

A refactoring is finished when this prints "same" for every case. OLD_REMATCH is a program built
before the change.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "demo" / "out" / "same_bits"
MATCHING = "custom.extra.rollout_matching."
STEPS = 20
REMOVED = {"rollout/deduplicated"}

COMMON = {
    "custom.train_jsonl": OUT / "scenes" / "train.jsonl",
    "custom.val_jsonl": OUT / "scenes" / "val.jsonl",
    "training.report_to": "none",
    "training.max_steps": STEPS,
    "training.logging_steps": 1,
    "training.eval_strategy": "steps",
    "training.eval_steps": STEPS // 2,
    "training.per_device_train_batch_size": 4,
    "training.effective_batch_size": 12,
    "training.save_only_model": "false",
}
PACKED = {"training.packing": "true", "global_max_length": 700}
LORA = {
    "tuner.train_type": "lora",
    "tuner.lora_rank": 8,
    "tuner.lora_dropout": 0.1,
    "training.learning_rate": 5e-3,
}
# A separate configuration: the demonstration's may change, the one compared here does not.
STAGE_2, STAGE_1 = OUT / "stage2.yaml", "tests/shapes/stage1_more.yaml"
STAGE_2_TEXT = f"""\
extends: {ROOT}/tests/shapes/common.yaml
model: {{model: tests/shapes/model}}
custom: {{trainer_variant: rollout_matching_sft}}
training: {{learning_rate: 1.5e-3, warmup_steps: 5}}
"""

# name -> (configuration, what it sets, step after which the run is broken off and resumed or None)
CASES = {
    "native": (STAGE_2, {}, None),
    "hf": (
        STAGE_2,
        {MATCHING + "rollout_backend": "hf", MATCHING + "rollout_generate_batch_size": 12},
        None,
    ),
    "sampled": (
        STAGE_2,
        {
            MATCHING + "temperature": 0.9,
            MATCHING + "top_p": 0.95,
            MATCHING + "repetition_penalty": 1.05,
        },
        None,
    ),
    "carry": (STAGE_2, PACKED, None),
    "carry_resumed": (STAGE_2, PACKED, 7),
    "lora": (
        STAGE_2,
        {
            **LORA,
            **PACKED,
            MATCHING + "post_rollout_pack_scope": "window",
            MATCHING + "rollout_buffer.enabled": "true",
            MATCHING + "rollout_buffer.m_steps": 2,
        },
        None,
    ),
    "dora_resumed": (
        STAGE_2,
        {
            **LORA,
            "tuner.use_dora": "true",
            MATCHING + "rollout_buffer.enabled": "true",
            MATCHING + "rollout_buffer.m_steps": 2,
        },
        9,
    ),
    "row_normalised": (
        STAGE_2,
        {MATCHING + "loss_normalization": "row", "training.gradient_checkpointing": "true"},
        None,
    ),
    "rewrite": (
        STAGE_2,
        {
            **PACKED,
            MATCHING + "target_policy": "rewrite",
            MATCHING + "rollout_share": 0.5,
            "custom.coord_input_noise": 12,
        },
        7,
    ),
    "stage_1": (STAGE_1, {}, None),
    "stage_1_packed": (STAGE_1, {**PACKED, "custom.object_ordering": "random"}, 7),
}


def is_time(name):
    return name.startswith("time/") or name.endswith(
        ("_per_s", "_per_second", "_runtime", "runtime")
    )


def log_lines(run_dir):
    lines = [json.loads(line) for line in (run_dir / "logging.jsonl").read_text().splitlines()]
    for line in lines:
        if "eval_set" in line:  # older programs do not name decoding and matching in it
            line["eval_set"] = line["eval_set"].split(", scoring ")[0]
    return [{key: value for key, value in line.items() if not is_time(key)} for line in lines]


def weights(run_dir, step):
    files = sorted((run_dir / f"checkpoint-{step}").glob("*.safetensors"))
    if not files:
        sys.exit(f"error: {run_dir} holds no weights of step {step}")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def remembered(program, name):
    """What run() gave for the old program; computed once for each program file."""
    key = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:16]
    file = OUT / "old" / f"{name}.{key}.json"
    if not file.exists():
        result = run(program, name, "old")
        file.write_text(json.dumps(result))
    return json.loads(file.read_text())


def run(program, name, side):
    """Weights and log lines of a case. A resumed case stops after some steps and continues from the
    checkpoint.
    """
    config, settings, broken_off = CASES[name]
    run_dir = OUT / side / name
    shutil.rmtree(run_dir, ignore_errors=True)
    given = {**COMMON, **settings, "training.output_dir": OUT / side, "training.run_name": name}
    starts = [{}]
    if broken_off:
        # The schedule needs the whole run's length, so the first start is stopped by a checkpoint
        # at that step and the rest is thrown away.
        given["training.save_strategy"], given["training.save_steps"] = "steps", broken_off
        starts.append({"training.resume_from_checkpoint": run_dir / f"checkpoint-{broken_off}"})
    for extra in starts:
        arguments = [
            part
            for key, value in {**given, **extra}.items()
            for part in ("--set", f"{key}={value}")
        ]
        done = subprocess.run(
            [program, "train", config, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"error: {side} program failed in case {name}\n{done.stderr[-3000:]}")
    return [weights(run_dir, STEPS), log_lines(run_dir)]


def difference(old, new):
    if old[0] != new[0]:
        return "the weights differ: " + ", ".join(
            sorted(name for name in old[0] if old[0][name] != new[0].get(name))
        )
    for number, (before, after) in enumerate(zip(old[1], new[1]), 1):
        # Metrics that only the new program has are not a difference, nor are removed ones.
        changed = [
            f"{key} {before[key]} -> {after.get(key)}"
            for key in before
            if before[key] != after.get(key) and key not in REMOVED
        ]
        if changed:
            return f"log line {number}: " + ", ".join(changed[:4])
    return "" if len(old[1]) == len(new[1]) else f"{len(old[1])} log lines against {len(new[1])}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    programs = {"old": os.path.abspath(sys.argv[1]), "new": os.path.abspath(sys.argv[2])}
    if not (OUT / "scenes" / "train.jsonl").exists():
        subprocess.run(
            [
                sys.executable,
                ROOT / "tests/shapes/make_scenes.py",
                OUT / "scenes",
                "--split",
                "hard",
                "--num-train",
                "96",
                "--num-val",
                "24",
                "--seed",
                "3",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    STAGE_2.write_text(STAGE_2_TEXT)
    failed = 0
    for name in sys.argv[3:] or CASES:
        found = difference(remembered(programs["old"], name), run(programs["new"], name, "new"))
        failed += bool(found)
        print(f"{name:16} {found or 'same'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
