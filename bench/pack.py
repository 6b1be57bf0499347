#!/usr/bin/env python3
"""Selecting the segments of a row from 512 waiting ones: each selector against a Python function
with the same rule, in one run.

usage: pack.py BENCH_PACK [--json OUT] [--buffers N] [--rounds N]
Needs the packages binpacking (1.5.2) and numpy. Both sides see the same buffers, in turns; their
choices must be equal. Prints medians over
all buffers and rounds, both sides warm, and writes them as JSON (default: pack.json next to the
program). The goal for `optimal` is 1 ms.
"""

import argparse
import datetime
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import binpacking  # noqa: E402
import numpy  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dev", "goldens"))
from packing_rule import rest_of, select_binpacking, select_fifo  # noqa: E402

WAITING = 512


def draw_short(draw):
    """Text and small images: 16 to 600 tokens."""
    return draw.randint(16, 600)


def draw_pictures(draw):
    """Images of five sizes with a prompt and an answer whose length has a long tail."""
    return min(
        16000, draw.choice([256, 400, 576, 768, 1024]) + 150 + int(draw.lognormvariate(5.3, 0.8))
    )


MIXES = {"short 16-600": draw_short, "pictures 400-2500": draw_pictures}


def select_optimal(lens, cap):
    rest, residual = rest_of(lens, cap), cap - lens[0]
    room = numpy.zeros(
        (len(rest) + 1, residual + 1), numpy.uint16
    )  # 65535 - fewest segments, 0 = no such total
    room[-1, 0] = 65535
    for i in reversed(range(len(rest))):
        length = rest[i][1]
        room[i] = room[i + 1]
        shorter = room[i + 1, : residual + 1 - length]
        numpy.maximum(room[i, length:], shorter - (shorter > 0), out=room[i, length:])
    total, selected = int(numpy.flatnonzero(room[0])[-1]), [0]
    for i, (index, length) in enumerate(rest):
        if (
            length <= total
            and room[i + 1, total - length]
            and int(room[i + 1, total - length]) - 1 >= room[i + 1, total]
        ):
            selected.append(index)
            total -= length
    return selected


def only_the_call(lens, cap):
    binpacking.to_constant_volume(rest_of(lens, cap), cap - lens[0], weight_pos=1)


PYTHON = {
    "fifo": select_fifo,
    "binpacking": select_binpacking,
    "optimal": select_optimal,
    "to_constant_volume": only_the_call,
}


def time_python(buffers):
    for lens, cap in buffers:
        answer = {}
        for name, function in PYTHON.items():
            start = time.perf_counter()
            selected = function(lens, cap)
            answer[name] = {"seconds": time.perf_counter() - start, "selected": selected}
        yield answer


def time_rematch(program, buffers):
    lines = "".join(
        json.dumps({"packing_length": cap, "encoded_lens": lens}) + "\n" for lens, cap in buffers
    )
    done = subprocess.run([program], input=lines, text=True, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(program, draw_len, cap, args):
    draw = random.Random(f"{draw_len.__name__} {cap}")
    buffers = [([draw_len(draw) for _ in range(WAITING)], cap) for _ in range(args.buffers)]
    ours, theirs = {}, {}
    list(time_python(buffers[:3]))  # warm, as the other side is
    for _ in range(args.rounds):
        for mine, other in zip(time_rematch(program, buffers), time_python(buffers)):
            for name, found in mine.items():
                if found["selected"] != other[name]["selected"]:
                    sys.exit(
                        f"{name} chooses differently: {found['selected']} and "
                        f"{other[name]['selected']}"
                    )
                ours.setdefault(name, []).append(found["seconds"])
            for name, found in other.items():
                theirs.setdefault(name, []).append(found["seconds"])
    call = statistics.median(theirs["to_constant_volume"])
    rows = []
    for name, seconds in ours.items():
        median, other = statistics.median(seconds), statistics.median(theirs[name])
        p95 = sorted(seconds)[int(0.95 * (len(seconds) - 1))]
        rows.append(
            {
                "packing_length": cap,
                "selector": name,
                "median_us": median * 1e6,
                "p95_us": p95 * 1e6,
                "python_us": other * 1e6,
                "ratio": other / median,
                "python_binpacking_call_us": call * 1e6,
                "ratio_to_binpacking_call": call / median,
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("--json")
    parser.add_argument("--buffers", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows = []
    print(
        f"{'lengths':18} {'row':>6} {'selector':11} {'median':>9} {'p95':>9} "
        f"{'Python, same rule':>18} {'ratio':>7} "
        f"{'binpacking call':>16} {'ratio':>7}"
    )
    for mix, draw_len in MIXES.items():
        for cap in (16000, 32000):
            for row in measure(args.program, draw_len, cap, args):
                rows.append({"lengths": mix, **row})
                print(
                    f"{mix:18} {cap:6} {row['selector']:11} {row['median_us']:6.1f} us "
                    f"{row['p95_us']:6.1f} us "
                    f"{row['python_us']:15.1f} us {row['ratio']:6.1f}x "
                    f"{row['python_binpacking_call_us']:13.1f} us "
                    f"{row['ratio_to_binpacking_call']:6.1f}x"
                )
    path = args.json or os.path.join(os.path.dirname(os.path.abspath(args.program)), "pack.json")
    with open(path, "w") as out:
        json.dump(
            {
                "date": datetime.date.today().isoformat(),
                "machine": platform.processor() or platform.machine(),
                "cores": os.cpu_count(),
                "waiting": WAITING,
                "buffers": args.buffers,
                "rounds": args.rounds,
                "rows": rows,
            },
            out,
            indent=1,
        )
        out.write("\n")


if __name__ == "__main__":
    main()
