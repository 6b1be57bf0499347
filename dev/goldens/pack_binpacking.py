#!/usr/bin/env python3
"""Writes tests/golden/pack_binpacking.jsonl: what the rule `binpacking` selects from 20 000 random
buffers, by the Python package itself.

usage: pack_binpacking.py OUT
The buffers are drawn by a 64-bit counter generator that tests/pack/select_golden_test.cc repeats.
Lines: 400 whole buffers
{buffer, packing_length, encoded_lens, selected}, then for every hundred {from, fnv1a64}: a hash of
count and indices of each selection.
"""

import collections
import json
import sys

from packing_rule import select_binpacking, select_fifo
from splitmix import MASK64, Draw

CAPS = [10, 24, 100, 1000, 16000, 32000]


def draw_len(draw, shape, cap):
    if shape == 0:  # anything
        return 1 + draw.below(cap)
    if shape == 1:  # several share a row
        return 1 + draw.below(max(1, cap // 4))
    if shape == 2:  # few sizes, many ties
        return max(1, cap // 16) * (1 + draw.below(6))
    if shape == 3:  # about half a row: what is left matters
        return cap // 3 + draw.below(cap // 3)
    if shape == 4:  # tiny
        return 1 + draw.below(min(cap, 8))
    return (
        cap // 4 - draw.below(2) if draw.below(3) else 1 + draw.below(cap)
    )  # near ties among anything


def draw_buffer(number):
    draw = Draw(number)
    cap = CAPS[draw.below(len(CAPS))]
    count = 512 if number % 100 == 99 else 1 + draw.below(64)
    shape = draw.below(6)
    return cap, [min(cap, max(1, draw_len(draw, shape, cap))) for _ in range(count)]


def fnv1a64(values):
    state = 0xCBF29CE484222325
    for value in values:
        for byte in value.to_bytes(4, "little"):
            state = ((state ^ byte) * 0x100000001B3) & MASK64
    return state


def main():
    whole, hashes, seen = [], [], collections.Counter()
    for start in range(0, 20000, 100):
        values = []
        for number in range(start, start + 100):
            cap, lens = draw_buffer(number)
            selected = select_binpacking(lens, cap)
            values += [len(selected)] + selected
            seen["better than fifo" if selected != select_fifo(lens, cap) else "fifo"] += 1
            if number % 50 == 0:
                whole.append(
                    {
                        "buffer": number,
                        "packing_length": cap,
                        "encoded_lens": lens,
                        "selected": selected,
                    }
                )
        hashes.append({"from": start, "fnv1a64": f"{fnv1a64(values):016x}"})
    with open(sys.argv[1], "w") as out:
        for row in whole + hashes:
            out.write(json.dumps(row, separators=(",", ":")) + "\n")
    print(dict(seen))


if __name__ == "__main__":
    main()
