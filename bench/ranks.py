#!/usr/bin/env python3
"""One rank with two threads against two ranks with one thread each, on the same windows: steps per second, seconds that ranks wait for each
other, and the peak memory of a rank under zero 0, 1 and 2.

usage: bench/ranks.py build/release/bin/rematch [--steps 6] [--samples 8] [--model DIR --data JSONL] [--json OUT]

Without --model and --data: the model of the demonstration, if it is there, on the images of the tests. Wants a quiet machine. The first step of each
run is left out. Sent by a rank in a step, by arithmetic: the gradients of every row once and the values that it does not own once, in float32.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDES = [("1 rank x 2 threads", 1, 2, 0), ("2 ranks x 1 thread, zero 0", 2, 1, 0), ("2 ranks x 1 thread, zero 1", 2, 1, 1),
         ("2 ranks x 1 thread, zero 2", 2, 1, 2)]


def peaks_of(program, parent, found, stop):
    """Collects the largest resident memory of every process of this program below `parent`, by pid, until told to stop."""
    while not stop.wait(0.1):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                status = (entry / "status").read_text()
                fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                mine = int(fields["PPid"]) == parent or int(entry.name) == parent
                if mine and os.path.realpath(entry / "exe") == program and "VmHWM" in fields:
                    found[entry.name] = int(fields["VmHWM"].split()[0])
            except (OSError, ValueError, KeyError):
                continue  # ended meanwhile


def train(arguments, side, directory):
    name, ranks, threads, zero = side
    accumulation = arguments.samples // ranks
    (directory / "run.yaml").write_text(f"""
global_max_length: 4096
model: {{model: {arguments.model}, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: {arguments.steps}, per_device_train_batch_size: 1,
  gradient_accumulation_steps: {accumulation}, learning_rate: 1.0e-6, logging_steps: 1, eval_strategy: "no", save_strategy: "no",
  report_to: none, zero_stage: {zero}}}
custom: {{trainer_variant: sft, train_jsonl: {arguments.data}}}
""")
    program = os.path.realpath(arguments.program)
    launch = ["launch", "--nproc", str(ranks)] if ranks > 1 else []
    process = subprocess.Popen([program, *launch, "train", "run.yaml"], cwd=directory, stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
    peaks, stop = {}, threading.Event()
    watch = threading.Thread(target=peaks_of, args=(program, process.pid, peaks, stop))
    watch.start()
    error = process.communicate()[1]
    stop.set()
    watch.join()
    if process.returncode != 0:
        sys.exit(f"{name} ends with exit code {process.returncode}:\n{error}")
    if ranks > 1:
        peaks.pop(str(process.pid), None)  # the launcher
    steps = [json.loads(line) for line in (directory / "out/run/logging.jsonl").read_text().splitlines()]
    steps = [step for step in steps if "time/step_s" in step][1:]
    return {"side": name, "step_s": statistics.median(step["time/step_s"] for step in steps),
            "wait_s": statistics.median(step.get("time/rank_wait_s", 0.0) for step in steps),
            "losses": [step["loss"] for step in steps], "peak_mib": max(peaks.values(), default=0) / 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--samples", type=int, default=8, help="in a window; even")
    demo = ROOT / "demo/model"
    parser.add_argument("--model", default=str(demo if (demo / "config.json").exists() else ROOT / "tests/golden/model/tiny_tied"))
    parser.add_argument("--data", default=str(ROOT / "tests/golden/e2e/train.jsonl"))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    for side in SIDES:
        with tempfile.TemporaryDirectory(prefix="bench-ranks-") as directory:
            rows.append(train(arguments, side, pathlib.Path(directory)))
        row = rows[-1]
        print(f"{row['side']:28} {1 / row['step_s']:7.3f} steps/s  {rows[0]['step_s'] / row['step_s']:5.2f} x  "
              f"waits {row['wait_s']:.3f} s  {row['peak_mib']:6.0f} MiB", flush=True)
    for row in rows[2:]:
        if row["losses"] != rows[1]["losses"]:
            sys.exit(f"{row['side']}: other losses than {rows[1]['side']}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"when": time.strftime("%F"), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
