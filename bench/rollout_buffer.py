#!/usr/bin/env python3
"""What the rollout buffer saves: the same windows of the demonstration used for 1, 2 and 4 optimizer steps each, in one run of this script.

usage: bench/rollout_buffer.py build/release/bin/rematch [--windows 12] [--rounds 3] [--json OUT]     needs demo/out/crowded (scripts/demo)

An un-buffered step costs E + M: rollout, parse, match, encoding and packing; forward, backward and update. With m steps a window it should
cost E/m + M. The learning rate is next to nothing, so that every run rolls out the same answers.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

E_STEP = ["time/rollout_generate_s", "time/rollout_parse_match_s", "time/rollout_teacher_encode_s", "time/post_rollout_pack_s"]
KEYS = "custom.extra.rollout_matching.rollout_buffer"


def run(binary, m_steps, num_windows, directory):
    """Means over the windows of one run, the first one left out: it warms up."""
    name = f"m{m_steps}"
    overrides = {"training.output_dir": directory, "training.run_name": name, "training.max_steps": num_windows * m_steps,
                 "training.learning_rate": 1e-9, "training.logging_steps": 1, "training.save_strategy": "no", "training.save_last_epoch": "false",
                 "training.report_to": "none", "training.eval_strategy": "no", "training.eval_on_start": "false",
                 "training.resume_from_checkpoint": "null", f"{KEYS}.enabled": "true", f"{KEYS}.m_steps": m_steps}
    command = [binary, "train", "configs/demo/stage2_buffered.yaml"]
    for key, value in overrides.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    path = pathlib.Path(directory) / name / "logging.jsonl"
    steps = [json.loads(line) for line in path.read_text().splitlines()][m_steps:]
    path.unlink()
    e_step = sum(step[key] for step in steps for key in E_STEP)
    return {"step_s": statistics.mean(step["time/step_s"] for step in steps), "e_s": e_step / len(steps) * m_steps,
            "generate_s": sum(step["time/rollout_generate_s"] for step in steps) / len(steps) * m_steps,
            "forward_s": statistics.mean(step["time/forward_s"] for step in steps),
            "backward_s": statistics.mean(step["time/backward_s"] for step in steps),
            "reuse": statistics.mean(step["rollout/buffer_reuse"] for step in steps)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if not pathlib.Path("demo/out/crowded/train.jsonl").exists():
        sys.exit("demo/out/crowded is missing: run scripts/demo once, from the checkout's directory")
    rounds = {1: [], 2: [], 4: []}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(arguments.rounds):
            for m_steps, results in rounds.items():
                results.append(run(arguments.binary, m_steps, arguments.windows, directory))
    # The median of the rounds: machines are noisy, and a slow minute must not affect one side only.
    typical = {m: {key: statistics.median(result[key] for result in results) for key in results[0]} for m, results in rounds.items()}
    e_s, m_s = typical[1]["e_s"], typical[1]["step_s"] - typical[1]["e_s"]
    print(f"un-buffered: E {e_s:.3f} s, M {m_s:.3f} s\n")
    print("| m_steps | steps/s | s per step | predicted (E + m M)/m | difference | rollout of a window | forward | backward |\n|---|---|---|---|---|---|---|---|")
    for m, one in typical.items():
        predicted = (e_s + m * m_s) / m
        one["predicted_s"] = predicted
        print(f"| {m} | {1 / one['step_s']:.2f} | {one['step_s']:.3f} | {predicted:.3f} | {100 * (one['step_s'] / predicted - 1):+.1f} % | "
              f"{one['generate_s']:.3f} | {one['forward_s']:.3f} | {one['backward_s']:.3f} |")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(typical, indent=2) + "\n")


if __name__ == "__main__":
    main()
