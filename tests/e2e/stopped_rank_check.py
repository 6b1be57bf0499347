#!/usr/bin/env python3
"""One of two ranks is stopped (SIGSTOP): the other ends, and names it, soon after
`training.ddp_timeout`, whichever rank is stopped, wherever the ranks' store is, and however full
its buffers are.

usage: stopped_rank_check.py BUILD [--short]      --short: three of the rows, for CI
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/checks"))
import ranks  # noqa: E402

TIMEOUT = 15
# Seconds from the stop. A store that does not answer is given ten more; torchrun kills a stopped
# rank after thirty; a full pipe holds a warning until the guard ends the process, ten later.
ENDED, STORE, PIPE, KILLED = TIMEOUT + 6, TIMEOUT + 18, TIMEOUT + 40, TIMEOUT + 45
OF_STORE = "rank 0, which hosts the ranks' store"
# How the ranks run, which one stops, where, what names it, seconds until all others have ended.
# `small`: socket buffers of 4 KiB, which the gradients to a stopped rank fill. `pipe`: the rank
# that is left writes its messages into a pipe that is full.
ROWS = [
    ("alone", 0, "update", OF_STORE, STORE),
    ("small", 1, "exchange", "rank 1 on ", ENDED),
    ("pipe", 1, "update", None, PIPE),
    ("alone", 1, "update", "rank 1 on ", ENDED),
    ("alone", 0, "start", OF_STORE, STORE),
    ("alone", 0, "rollout", OF_STORE, STORE),
    ("small", 0, "exchange", OF_STORE, STORE),
    ("alone", 1, "save", "rank 1 on ", ENDED),
    ("torchrun", 0, "update", "rank 0 on ", KILLED),
    ("torchrun", 1, "exchange", "rank 1 on ", KILLED),
]
SMALL = """ip link set lo up && cd /proc/sys/net/ipv4 && echo 4096 4096 4096 > tcp_wmem &&
echo 4096 4096 4096 > tcp_rmem && cd - > /dev/null && exec "$@" """


def start(build, directory, row, pipe):
    """The processes, by rank; of torchrun its one.
    @param pipe  for the messages of the rank that is left, if the row is about one
    """
    how, stopped, phase = row[:3]
    env = dict(
        os.environ,
        OMP_NUM_THREADS="1",
        LD_PRELOAD=f"{build}/tests/librematch_rank_fault_shim.so",
        PLANT_RANK=str(stopped),
        PLANT_PHASE=phase,
        PLANT_FAULT="stop",
        PLANT_AT=str(ranks.AT.get(phase, 1)),
        PLANT_UNDER=f"{directory}/out",
    )
    train = [f"{build}/bin/rematch", "train", "run.yaml"]
    train += ["--set", f"training.ddp_timeout={TIMEOUT}"]
    if how == "torchrun":
        train = [f"{ROOT}/.venv/bin/torchrun", "--no-python", "--nproc-per-node", "2", *train]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = []
    for rank in range(1 if how == "torchrun" else 2):
        world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": str(rank)}
        world |= {"LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        with open(directory / f"{rank}.txt", "w") as messages:
            processes.append(
                subprocess.Popen(
                    train,
                    cwd=directory,
                    env=env if how == "torchrun" else env | world,
                    stdout=subprocess.DEVNULL,
                    stderr=pipe if how == "pipe" and rank != stopped else messages,
                )
            )
    return processes


def fill(pipe):
    """Opens the pipe again, so that the rank's own writes go on to block."""
    own = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(own, b"x")
    except BlockingIOError:
        os.close(own)


def check(build, row):
    """Seconds from the stop until all others had ended; a text if that is not as it should be."""
    how, stopped, phase, name, limit = row
    with tempfile.TemporaryDirectory(prefix="stopped-rank-") as scratch:
        directory = ranks.run_directory(pathlib.Path(scratch) / "run")
        unread, pipe = os.pipe()
        processes = start(build, directory, row, pipe)
        read = lambda: "".join(path.read_text() for path in directory.glob("?.txt"))  # noqa: E731
        others = [one for rank, one in enumerate(processes) if how == "torchrun" or rank != stopped]
        try:
            begin = time.monotonic()
            while "planted: stop" not in read():
                if time.monotonic() - begin > 120 or any(one.poll() is not None for one in others):
                    return f"the fault was not planted:\n{read()}"
                time.sleep(0.05)
            fill(pipe)
            begin = time.monotonic()
            while any(one.poll() is None for one in others):
                if time.monotonic() - begin > 2 * limit:
                    return f"not ended after {2 * limit} s:\n{read()}"
                time.sleep(0.05)
            seconds = time.monotonic() - begin
            if name and name not in read():
                return f"`{name}` is not named:\n{read()}"
            return seconds if seconds <= limit else f"ended after {seconds:.0f} s, not {limit}"
        finally:
            for one in processes:
                one.send_signal(signal.SIGCONT)
                one.kill()
                one.wait()
            os.close(unread)
            os.close(pipe)


def check_in_small_namespace(build, number):
    script = [sys.executable, __file__, str(build), "--row", str(number)]
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", SMALL, "sh", *script], capture_output=True, text=True
    )
    found = re.fullmatch(r"seconds (\S+)\n", done.stdout)
    if found:
        return float(found[1])
    return done.stdout or f"skipped: {done.stderr.strip()[-200:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--row", type=int, help="of the namespace that this script makes")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if arguments.row is not None:
        result = check(build, ROWS[arguments.row])
        print(f"seconds {result}" if isinstance(result, float) else result)
        return 0

    def outcome(number):
        small = ROWS[number][0] == "small"
        return (check_in_small_namespace if small else lambda _, n: check(build, ROWS[n]))(
            build, number
        )

    numbers = range(3 if arguments.short else len(ROWS))
    num_failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(numbers)) as pool:
        for number, result in zip(numbers, pool.map(outcome, numbers)):
            good = isinstance(result, float)
            num_failed += not good and not result.startswith("skipped")
            print(*ROWS[number][:3], f"all ended after {result:.1f} s" if good else result)
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
