#!/usr/bin/env python3
"""Draws docs/packing_carry.svg: a carry buffer over a few micro-batches, rows chosen by the program
itself (`rematch stage pack`).

usage: draw_carry.py build/release/bin/rematch > docs/packing_carry.svg
"""

import json
import random
import subprocess
import sys

CAP = 1000
SELECTOR = "binpacking"
NUM_STEPS = 6
COLORS = [
    "#4477aa",
    "#ee7733",
    "#228833",
    "#cc3377",
    "#997700",
    "#33bbcc",
]  # one for each micro-batch; told apart by colour-blind eyes
WIDTH, ROW_H, BAR_H, LEFT, TOP = 960, 74, 24, 96, 56
SCALE = 400 / CAP


def select(binary, lens):
    line = json.dumps({"encoded_lens": lens, "packing_length": CAP, "packing_selector": SELECTOR})
    answer = subprocess.run(
        [binary, "stage", "pack"], input=line, capture_output=True, text=True, check=True
    ).stdout
    return json.loads(answer)["selected"]


def bar(x, y, length, color, number):
    width = length * SCALE
    label = (
        f'<text x="{x + width / 2:.1f}" y="{y + 16}" text-anchor="middle" '
        f'fill="#fff">{number}</text>'
        if width > 18
        else ""
    )
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width - 1.5:.1f}" height="{BAR_H}" rx="3" '
        f'fill="{color}"/>{label}',
        x + width,
    )


def main():
    binary = sys.argv[1]
    rng = random.Random(5)
    waiting, number = [], 0
    parts = [
        f'<text x="{LEFT}" y="36" class="head">the row that is trained (cap {CAP} tokens)</text>',
        f'<text x="{LEFT + 470}" y="36" class="head">segments that keep waiting</text>',
    ]
    for step in range(NUM_STEPS):
        for _ in range(rng.choice([2, 3])):
            waiting.append(
                (
                    number,
                    rng.choice([140, 190, 240, 310, 380, 450, 520]),
                    COLORS[step % len(COLORS)],
                )
            )
            number += 1
        chosen = select(binary, [length for _, length, _ in waiting])
        row = [waiting[i] for i in chosen]
        waiting = [item for i, item in enumerate(waiting) if i not in chosen]
        y = TOP + step * ROW_H
        total = sum(length for _, length, _ in row)
        parts.append(
            f'<rect x="8" y="{y + 4}" width="14" height="14" rx="3" '
            f'fill="{COLORS[step % len(COLORS)]}"/>'
            f'<text x="28" y="{y + 16}">batch {step + 1}</text>'
        )
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{CAP * SCALE}" height="{BAR_H}" class="frame"/>'
        )
        x = LEFT
        for index, length, color in row:
            text, x = bar(x, y, length, color, index)
            parts.append(text)
        parts.append(
            f'<text x="{LEFT}" y="{y + BAR_H + 16}" class="small">fill {total / CAP:.2f}, '
            f'{len(row)} segments</text>'
        )
        x = LEFT + 470
        for index, length, color in waiting:
            text, x = bar(x, y, length, color, index)
            parts.append(text)
        if not waiting:
            parts.append(f'<text x="{x}" y="{y + 16}" class="small">nothing</text>')
    height = TOP + NUM_STEPS * ROW_H
    style = (
        "text{font:13px system-ui,sans-serif}text:not([fill]){fill:#555}"
        ".head{font-weight:600}.small{font-size:12px}"
        ".frame{fill:none;stroke:#999;stroke-dasharray:4 3}"
    )
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 '
        f'{WIDTH} {height}" role="img" '
        f'aria-label="A carry buffer over {NUM_STEPS} micro-batches"><style>{style}</style>'
    )
    print("\n".join(parts))
    print("</svg>")


if __name__ == "__main__":
    main()
