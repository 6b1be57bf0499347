#!/usr/bin/env python3
"""Plants faults in rank 1 of a short training on two ranks: every fault in every phase of a run.
Each time the other rank must name the fault and end, torchrun must restart both, and the run must
end with the weights, optimizer state and log of an undisturbed one.

usage: scripts/check ranks [--short] [--phase PHASE] [--fault FAULT] [--patience 1]   the whole
matrix takes about half an hour

A phase is seen by what the program calls of other libraries in it
(tests/support/rank_fault_shim.cc).
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REMATCH_BUILD_DIR", ROOT / "build/release"))
PHASES = ["start", "rollout", "parse", "backward", "exchange", "update", "evaluate", "save"]
FAULTS = ["kill", "stop", "hang", "interrupt", "throw", "full", "nan", "poor"]
POOR = ("start", "poor")  # not planted: resource limits on all ranks
SHORT = [
    POOR,
    ("rollout", "interrupt"),
    ("backward", "nan"),
    ("backward", "throw"),
    ("exchange", "kill"),
    ("evaluate", "throw"),
    ("save", "full"),
]
STEPS = 4
AT = {
    "rollout": 20,
    "parse": 4,
    "backward": 3,
    "exchange": 3,
    "update": 30,
    "evaluate": 3,
    "save": 2,
}  # which entry: in step 2 or 3, as a fault of the last step comes too late
# Seconds until all has ended: the others end after a stopped rank has been silent for 30 s, and
# torchrun kills it 30 s later. Ranks wait two minutes for one that stops before it has connected.
USUAL, STOPPED, STOPPED_AT_START = 60, 150, 240


class Failed(Exception):
    pass


def run_directory(scratch):
    """A configuration and its data in a directory of their own; the images of the evaluation lie
    apart.
    """
    scratch.mkdir()
    golden = ROOT / "tests/golden/e2e"
    shutil.copytree(golden / "images", scratch / "images")
    shutil.copytree(golden / "images", scratch / "val_images")
    shutil.copy(golden / "train.jsonl", scratch)
    (scratch / "val.jsonl").write_text(
        (golden / "val.jsonl").read_text().replace("images/", "val_images/")
    )
    (scratch / "run.yaml").write_text(f"""
global_max_length: 1024
model: {{model: {ROOT}/tests/golden/model/tiny_tied, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: {STEPS}, per_device_train_batch_size: 2,
  gradient_accumulation_steps: 1,
  per_device_eval_batch_size: 1, learning_rate: 1.0e-3, logging_steps: 1, eval_strategy: steps,
  eval_steps: 2, report_to: none,
  save_strategy: steps, save_steps: 2, zero_stage: 1, resume_from_checkpoint: latest}}
custom:
  trainer_variant: rollout_matching_sft
  train_jsonl: train.jsonl
  val_jsonl: val.jsonl
  val_sample_limit: 4
  extra: {{rollout_matching: {{rollout_backend: hf, rollout_generate_batch_size: 4,
    max_new_tokens: 8}}}}
""")
    return scratch


def train(directory, plant, limit, wrapper=()):
    """Two ranks, restarted once after a failure. Returns torchrun's exit code, standard error and
    seconds.
    """
    phase, fault = plant or ("", "")
    if plant:
        wrapper = [
            "env",
            f"LD_PRELOAD={BUILD}/tests/librematch_rank_fault_shim.so",
            "PLANT_RANK=1",
            f"PLANT_PHASE={phase}",
            f"PLANT_FAULT={fault}",
            f"PLANT_AT={AT.get(phase, 1)}",
            f"PLANT_UNDER={directory}/out",
        ]
    # torchrun takes an interrupt of one rank for a failure
    torchrun = [
        ROOT / ".venv/bin/torchrun",
        "--no-python",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        "0" if fault == "interrupt" else "1",
    ]
    command = [*torchrun, *wrapper, BUILD / "bin/rematch", "train", "run.yaml"]
    if fault == "hang":
        command += ["--set", "training.ddp_timeout=20"]
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, error = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            _, error = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            error = "torchrun does not end\n"
        raise Failed(f"not ended after {limit} s:\n{error}") from None
    return process.returncode, error, time.monotonic() - start


def outcome(directory):
    """Weights and optimizer of the last step as bytes, and the log without what a clock decides."""
    checkpoint = directory / f"out/run/checkpoint-{STEPS}"
    files = {path.name: path.read_bytes() for path in sorted(checkpoint.rglob("*.safetensors"))}
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
    return files, lines


def expect(condition, what, error):
    if not condition:
        raise Failed(f"{what}:\n{error}")


def check(plant, scratch, undisturbed, patience):
    phase, fault = plant
    directory = run_directory(scratch / f"{phase}-{fault}")
    limit = patience * (
        USUAL
        if fault not in ("stop", "hang")
        else STOPPED_AT_START
        if phase == "start"
        else STOPPED
    )
    code, error, seconds = train(directory, plant, limit)
    expect(f"planted: {fault} in {phase}" in error, "the fault was not planted", error)
    if fault == "interrupt":
        expect(re.search("exitcode +: 130 ", error), "no exit code 130", error)
        code, error, _ = train(directory, None, patience * USUAL)
    else:
        expect(
            fault != "hang" or phase == "start" or "has made no progress" in error,
            "not taken for stuck",
            error,
        )
        # The other rank writes "rank 1", before ranks have connected torchrun alone does; with NaN
        # each rank names its own samples.
        name = "the gradient is not finite" if fault == "nan" else "rank 1"
        expect(
            name in error or phase == "start" and "local_rank: 1" in error,
            f"`{name}` is not named",
            error,
        )
    expect(code == 0, f"exit code {code}", error)
    files, lines = outcome(directory)
    expect(
        files == undisturbed[0],
        f"other weights or optimizer state in "
        f"{[n for n in files if files[n] != undisturbed[0].get(n)]}",
        error,
    )
    expected = undisturbed[1]
    if fault == "nan":  # the window was saved: its step is repeated without rollouts, and logs none
        expected = [
            {k: v for k, v in old.items() if k in new}
            for old, new in zip(expected, lines, strict=True)
        ]
    expect(lines == expected, "another log", error)
    shutil.rmtree(directory)
    return seconds


def check_poor(scratch, undisturbed, patience):
    """Few descriptors, a small stack and little address space are enough; too few descriptors are
    named.
    """
    directory = run_directory(scratch / "poor")
    code, error, seconds = train(
        directory,
        None,
        patience * USUAL,
        ["prlimit", "--nofile=32", f"--stack={256 << 10}", f"--as={4 << 30}"],
    )
    expect(code == 0, f"exit code {code}", error)
    expect(outcome(directory) == undisturbed, "other weights, optimizer state or log", error)
    rank_0 = dict(
        os.environ, WORLD_SIZE="2", RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29599"
    )  # it hosts the store
    done = subprocess.run(
        ["prlimit", "--nofile=12", BUILD / "bin/rematch", "train", "run.yaml"],
        cwd=directory,
        env=rank_0,
        capture_output=True,
        text=True,
    )
    expect(
        done.returncode == 4 and "ulimit -n" in done.stderr,
        f"exit code {done.returncode}, or the limit is not named",
        done.stderr,
    )
    shutil.rmtree(directory)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--short", action="store_true", help="seven of the matrix, for CI")
    parser.add_argument("--phase", choices=PHASES)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument(
        "--patience", type=float, default=1, help="times the usual limits, for a crowded machine"
    )
    arguments = parser.parse_args()
    matrix = (
        SHORT
        if arguments.short
        else [
            (p, f)
            for p in PHASES
            for f in FAULTS
            if p == {"nan": "backward", "poor": "start"}.get(f, p)
        ]
    )
    matrix = [
        (p, f) for p, f in matrix if arguments.phase in (None, p) and arguments.fault in (None, f)
    ]
    if not matrix:
        parser.error("no fault of the matrix is left")
    failures = 0
    with tempfile.TemporaryDirectory(prefix="check-ranks-") as name:
        scratch = pathlib.Path(name)
        calm = run_directory(scratch / "undisturbed")
        code, error, _ = train(calm, None, arguments.patience * USUAL)
        if code != 0:
            sys.exit(f"the undisturbed run ends with exit code {code}:\n{error}")
        undisturbed = outcome(calm)
        for plant in matrix:
            try:
                given = (scratch, undisturbed, arguments.patience)
                seconds = check_poor(*given) if plant == POOR else check(plant, *given)
                print(f"{plant[0]:9} {plant[1]:9} ok, {seconds:.0f} s", flush=True)
            except Failed as failure:
                failures += 1
                print(f"{plant[0]:9} {plant[1]:9} FAILED: {failure}", flush=True)
    sys.exit(f"{failures} of {len(matrix)} failed" if failures else 0)


if __name__ == "__main__":
    main()
