#!/usr/bin/env python3
"""Writes tests/golden/match/assignments.txt: what scipy's linear_sum_assignment returns for
matrices full of ties.

usage: match_assignments.py OUT
The matrices are drawn by a 64-bit counter generator that tests/match/golden_test.cc repeats; a line
holds the columns.
"""

import sys

import numpy as np
from scipy.optimize import linear_sum_assignment
from splitmix import Draw


def draw_matrix(draw):
    if draw.below(2) == 0:  # small integers
        n, high = 1 + draw.below(14), 1 + draw.below(4)
        return np.array([[float(draw.below(high)) for _ in range(n)] for _ in range(n)])
    num_p, num_g = (
        1 + draw.below(9),
        1 + draw.below(9),
    )  # the matcher's padded shape, costs in tenths
    fp, fn = draw.below(12) / 10.0, draw.below(12) / 10.0
    costs = np.zeros((num_p + num_g, num_p + num_g))
    costs[:num_p, num_g:] = fp
    costs[num_p:, :num_g] = fn
    for p in range(num_p):
        for g in range(num_g):
            costs[p, g] = 1e6 if draw.below(2) else draw.below(8) / 10.0
    return costs


def main():
    draw = Draw(19)
    with open(sys.argv[1], "w") as out:
        for _ in range(4000):
            rows, columns = linear_sum_assignment(draw_matrix(draw))
            out.write(" ".join(map(str, columns)) + "\n")


main()
