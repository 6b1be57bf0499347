"""The selection rules `fifo` and `binpacking` in Python, the latter by the package binpacking
1.5.2: what the C++ selectors are held to and
measured against."""

import binpacking


def select_fifo(lens, cap):
    total, selected = 0, []
    for i, length in enumerate(lens):
        if total + length <= cap:
            total += length
            selected.append(i)
    return selected


def rest_of(lens, cap):
    return [(i, length) for i, length in enumerate(lens) if i > 0 and length <= cap - lens[0]]


def select_binpacking(lens, cap):
    fifo, rest = select_fifo(lens, cap), rest_of(lens, cap)
    if not rest:
        return fifo
    bins = binpacking.to_constant_volume(rest, cap - lens[0], weight_pos=1)
    total, _, indices = min(
        (-sum(length for _, length in b), len(b), sorted(i for i, _ in b)) for b in bins
    )
    return [0] + indices if lens[0] - total > sum(lens[i] for i in fifo) else fifo
