#!/usr/bin/env python3
"""Two network namespaces as two hosts with a rank each: they end at the weights of one process, and
a wrong interface is refused by name.

usage: two_hosts_check.py PROGRAM      exit 77 where namespaces cannot be made
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAMES = [f"rematch{os.getpid()}a", f"rematch{os.getpid()}b"]
LINKS = ["rmthost0", "rmthost1"]


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


def connect():
    """The namespaces with 10.213.7.1 and 10.213.7.2; skips the test where that is not allowed."""
    steps = [["netns", "add", name] for name in NAMES]
    steps += [
        [
            "-n",
            NAMES[0],
            "link",
            "add",
            LINKS[0],
            "type",
            "veth",
            "peer",
            "name",
            LINKS[1],
            "netns",
            NAMES[1],
        ]
    ]
    for number, (name, link) in enumerate(zip(NAMES, LINKS), 1):
        steps += [
            ["-n", name, "addr", "add", f"10.213.7.{number}/24", "dev", link],
            ["-n", name, "link", "set", link, "up"],
            ["-n", name, "link", "set", "lo", "up"],
        ]
    for step in steps:
        try:
            done = ip(*step)
        except FileNotFoundError:
            skip("there is no `ip`")
        if done.returncode != 0:
            skip(f"ip {' '.join(step)}: {done.stderr.strip()}")


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def configure(directory):
    directory.mkdir()
    golden = ROOT / "tests/golden"
    (directory / "run.yaml").write_text(f"""
global_max_length: 1024
model: {{model: {golden}/model/tiny_tied, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: 1, learning_rate: 1.0e-3,
  eval_strategy: "no", report_to: none}}
custom: {{trainer_variant: sft, train_jsonl: {golden}/e2e/train.jsonl}}
""")
    return directory


def train(program, directory, interfaces):
    """A rank in each namespace. Returns what each wrote and its exit code."""
    ranks = []
    for rank, interface in enumerate(interfaces):
        environment = dict(
            os.environ,
            OMP_NUM_THREADS="1",
            WORLD_SIZE="2",
            RANK=str(rank),
            LOCAL_RANK="0",
            LOCAL_WORLD_SIZE="1",
            MASTER_ADDR="10.213.7.1",
            MASTER_PORT="29477",
            GLOO_SOCKET_IFNAME=interface,
        )
        ranks.append(
            subprocess.Popen(
                ["ip", "netns", "exec", NAMES[rank], program, "train", "run.yaml"],
                cwd=directory,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [(rank.returncode, error) for rank, error in zip(ranks, errors)]


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    connect()
    with tempfile.TemporaryDirectory(prefix="two-hosts-") as name:
        alone, hosts = (
            configure(pathlib.Path(name) / "alone"),
            configure(pathlib.Path(name) / "hosts"),
        )
        subprocess.run(
            [program, "train", "run.yaml", "--set", "training.gradient_accumulation_steps=2"],
            cwd=alone,
            check=True,
            env=dict(os.environ, OMP_NUM_THREADS="1"),
            capture_output=True,
        )
        for code, error in train(program, hosts, LINKS):
            assert code == 0, error
        weights = [
            (where / "out/run/checkpoint-1/model.safetensors").read_bytes()
            for where in (alone, hosts)
        ]
        assert weights[0] == weights[1], "other weights than one process"

        start = time.monotonic()
        (code_0, error_0), (code_1, error_1) = train(program, hosts, [LINKS[0], "nowhere0"])
        assert code_1 == 4 and "GLOO_SOCKET_IFNAME" in error_1 and "nowhere0" in error_1, error_1
        assert code_0 == 4 and "rank 1" in error_0, error_0
        assert time.monotonic() - start < 60, "the other rank did not end"
    print("two hosts train as one process; a wrong interface ends both")


if __name__ == "__main__":
    try:
        main()
    finally:
        for namespace in NAMES:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
