#!/usr/bin/env python3
"""Writes tests/golden/match/masks.txt: masks of random geometries as pycocotools fills them.

usage: match_masks.py OUT
The geometries are drawn by a 64-bit counter generator that tests/match/golden_test.cc repeats, so
only results are stored.
A line: resolution, area of A, area of B, |A and B|, FNV-1a of A's run lengths, FNV-1a of B's.
"""

import sys

import numpy as np
from pycocotools import mask as coco
from splitmix import Draw

RESOLUTIONS = [1, 2, 3, 7, 16, 64, 100, 128, 255, 256]


def draw_geometry(draw):
    """A box, or a polygon of 3..9 vertices that may cross itself, repeat vertices, leave the canvas
    or lie on its border.
    """
    kind = draw.below(8)
    spread = [1000, 1000, 12, 4, 60, 300, 1000, 1100][kind]
    x0, y0 = draw.below(1001 - min(spread, 1000)), draw.below(1001 - min(spread, 1000))
    num = 2 if kind in (0, 2) else 3 + draw.below(7)
    points = []
    for i in range(num):
        if i > 0 and draw.below(10) == 0:
            points.append(points[-1])
        else:
            points.append((x0 + draw.below(spread), y0 + draw.below(spread)))
    return points


def fill(points, resolution):
    clamped = [(min(max(x, 0), 999), min(max(y, 0), 999)) for x, y in points]
    if len(points) == 2:
        (xa, ya), (xb, yb) = clamped
        x1, x2, y1, y2 = min(xa, xb), max(xa, xb), min(ya, yb), max(ya, yb)
        clamped = [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]
    flat = [float(v) * resolution / 1000.0 for point in clamped for v in point]
    return coco.decode(coco.frPyObjects([flat], resolution, resolution))[:, :, 0]


def run_hash(mask):
    """FNV-1a (32 bits) of the run lengths, column by column, written as "a,b,c,"."""
    flat = mask.flatten(order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    bounds = [0, *edges.tolist(), flat.size]
    runs = [b - a for a, b in zip(bounds, bounds[1:])]
    if flat[0] == 1:
        runs = [0, *runs]
    value = 2166136261
    for byte in "".join(f"{run}," for run in runs).encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def main():
    draw = Draw(20260119)
    with open(sys.argv[1], "w") as out:
        for _ in range(3000):
            resolution = RESOLUTIONS[draw.below(len(RESOLUTIONS))] if draw.below(2) else 256
            a, b = draw_geometry(draw), draw_geometry(draw)
            mask_a, mask_b = fill(a, resolution), fill(b, resolution)
            both = int((mask_a & mask_b).sum())
            out.write(
                f"{resolution} {int(mask_a.sum())} {int(mask_b.sum())} {both} {run_hash(mask_a)} "
                f"{run_hash(mask_b)}\n"
            )


main()
