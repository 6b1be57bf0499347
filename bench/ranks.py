#!/usr/bin/env python3
"""One rank with two threads against two ranks with one thread each, on the same windows of stage 2:
steps per second, processor time,
bytes that travel, and the peak memory of a rank, with gradients summed once per step and row by row
(`training.exact_ranks`).

usage: bench/ranks.py build/release/bin/rematch [--case demo|rows|small] [--side NAME …]
                      [--steps 4] [--rounds 3] [--json OUT]

demo: configs/demo/stage2.yaml, 24 scenes in a window, one row for each of two ranks. rows: the same
in rows of three scenes. small: the random
model of that name of bench/rollout.py (31 M values), 8 scenes and short answers. Sides take turns;
the first step of each run is left out.
Times are medians of all other steps. A ratio is the median of the rounds' ratios, whose sides ran
close together. Bytes are what the loopback interface of a
network namespace has carried, start included; the least is every gradient of a step to its owner
and every value back once. Processor
time is that of a whole run less that of a run of one step; compared with one rank with one thread
it says what ranks add, also on a machine
too crowded for times.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
SIDES = {
    "1 rank x 1 thread": (1, 1, 0, False),
    "1 rank x 2 threads": (1, 2, 0, False),
    "2 ranks, zero 0": (2, 1, 0, False),
    "2 ranks, zero 1": (2, 1, 1, False),
    "2 ranks, zero 0, exact": (2, 1, 0, True),
    "2 ranks, zero 1, exact": (2, 1, 1, True),
}  # ranks, threads, zero, exact_ranks
CASES = {
    "demo": dict(window=24, micro_batch=12, max_new_tokens=180),
    "rows": dict(window=24, micro_batch=3, max_new_tokens=180),
    "small": dict(window=8, micro_batch=4, max_new_tokens=32),
}
IN_NAMESPACE = [
    "unshare",
    "-n",
    "sh",
    "-c",
    'ip link set lo up; "$@"; code=$?; grep lo: /proc/net/dev >&2; exit $code',
    "sh",
]


def peaks_of(program, directory, found, stop):
    """Collects the largest resident memory of every rank of the run in `directory`, by pid, until
    told to stop.
    """
    while not stop.wait(0.1):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (
                    os.path.realpath(entry / "exe") == program
                    and str(directory).encode() in (entry / "cmdline").read_bytes()
                ):
                    found[entry.name] = int(
                        re.search(r"VmHWM:\s*(\d+)", (entry / "status").read_text()).group(1)
                    )
            except (OSError, AttributeError):
                continue  # ended meanwhile


def train(num_steps, program, case, model, scenes, side, directory):
    ranks, threads, zero, exact = SIDES[side]
    settings = {
        "model.model": model,
        "custom.train_jsonl": scenes / "train.jsonl",
        "custom.val_jsonl": scenes / "val.jsonl",
        "training.output_dir": directory,
        "training.run_name": "run",
        "training.max_steps": num_steps,
        "training.per_device_train_batch_size": CASES[case]["micro_batch"],
        "training.effective_batch_size": CASES[case]["window"],
        "training.learning_rate": 1e-9,
        "training.logging_steps": 1,
        "training.eval_strategy": "no",
        "training.eval_on_start": "false",
        "training.report_to": "none",
        "training.save_strategy": "no",
        "training.save_last_epoch": "false",
        "training.zero_stage": zero,
        "training.exact_ranks": str(exact).lower(),
        "custom.extra.rollout_matching.max_new_tokens": CASES[case]["max_new_tokens"],
    }
    command = [
        program,
        "train",
        "configs/demo/stage2.yaml",
        *(f"--set={key}={value}" for key, value in settings.items()),
    ]
    if ranks > 1:
        command = [
            str(ROOT / ".venv/bin/torchrun"),
            "--no-python",
            "--nproc-per-node",
            str(ranks),
            *command,
        ]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        IN_NAMESPACE + command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    peaks, stop = {}, threading.Event()
    watch = threading.Thread(target=peaks_of, args=(program, directory, peaks, stop))
    watch.start()
    error = process.communicate()[1]
    stop.set()
    watch.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        sys.exit(f"{side} ends with exit code {process.returncode}:\n{error}")
    steps = [
        json.loads(line) for line in (directory / "run/logging.jsonl").read_text().splitlines()
    ]
    steps = [step for step in steps if "time/step_s" in step]
    return {
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "step_s": [step["time/step_s"] for step in steps[1:]],
        "losses": [step["loss"] for step in steps],
        "peak_mib": max(peaks.values(), default=0) / 1024,
        "mib_per_step": int(re.search(r"lo:\s*(\d+)", error).group(1)) / len(steps) / 2**20,
    }


def num_values(model):
    total = 0
    for path in pathlib.Path(model).glob("*.safetensors"):
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        for name, entry in header.items():
            values = 1
            for size in entry["shape"] if name != "__metadata__" else [0]:
                values *= size
            total += values
    return total


def measure(arguments, case, scratch):
    model = ROOT / "demo/model"
    if case == "small":
        from rollout import make_checkpoint

        model = scratch / "model"
        model.mkdir()
        make_checkpoint(model, "small")
    program = os.path.realpath(arguments.program)

    def run(steps, side):
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            return train(
                steps, program, case, model, scratch / "scenes", side, pathlib.Path(directory)
            )

    rounds, starts = {side: [] for side in arguments.side or SIDES}, {}
    for _ in range(arguments.rounds):
        for side in rounds:
            rounds[side].append(run(arguments.steps + 1, side))
            starts[side] = starts.get(side) or run(1, side)["cpu_s"]
    for exact in (False, True):
        losses = {
            side: {str(one["losses"]) for one in ones}
            for side, ones in rounds.items()
            if SIDES[side][0] > 1 and SIDES[side][3] == exact
        }
        if len(set().union(*losses.values())) > 1:
            sys.exit(f"{case}: sides with two ranks have different losses: {losses}")
    least = 2 * num_values(model) * 4 / 2**20
    rows = []
    for side, ones in rounds.items():
        step_s = statistics.median(s for one in ones for s in one["step_s"])
        against = zip(rounds.get("1 rank x 2 threads", ones), ones)
        ratio = statistics.median(
            statistics.median(a["step_s"]) / statistics.median(b["step_s"]) for a, b in against
        )
        cpu_s = statistics.median(one["cpu_s"] - starts[side] for one in ones) / arguments.steps
        row = {
            "side": side,
            "step_s": step_s,
            "cpu_s": cpu_s,
            "ratio": ratio,
            "peak_mib": statistics.median(one["peak_mib"] for one in ones),
            "mib_per_step": statistics.median(one["mib_per_step"] for one in ones),
        }
        rows.append(row)
        travels = (
            f"{row['mib_per_step']:.0f} ({row['mib_per_step'] / least:.1f} x)"
            if SIDES[side][0] > 1
            else ""
        )
        print(
            f"| {case} | {side} | {1 / step_s:.3f} | {ratio:.2f} | {cpu_s:.2f} | {travels} | "
            f"{row['peak_mib']:.0f} |",
            flush=True,
        )
    return {"case": case, "rows": rows, "least_mib": least}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--case", choices=CASES)
    parser.add_argument(
        "--side", action="append", choices=SIDES, help="again for each; default: all"
    )
    parser.add_argument("--steps", type=int, default=4, help="that count, of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    print(
        "| case | side | steps/s | of 1 x 2 | processor s a step | MiB a step (of the least) | "
        "peak MiB |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench-ranks-") as name:
        scratch = pathlib.Path(name)
        subprocess.run(
            [
                sys.executable,
                str(ROOT / "dev/demo/make_pages.py"),
                str(scratch / "scenes"),
                "--split",
                "crowded",
                "--num-train",
                "128",
                "--num-val",
                "8",
                "--seed",
                "0",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        results = [
            measure(arguments, case, scratch) for case in CASES if arguments.case in (None, case)
        ]
    if arguments.json:
        pathlib.Path(arguments.json).write_text(
            json.dumps({"when": time.strftime("%F"), "cases": results}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
