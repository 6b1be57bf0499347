"""Writes tests/golden/mstep_losses.{json,bin}: the losses of BEHAVIOUR 8 and their gradients in
float64, by autograd.

Run: OMP_NUM_THREADS=1 .venv/bin/python dev/goldens/mstep_losses.py
The .bin holds, case after case, the float32 logits [T, V] and then the float64 gradient of `loss`
by them rounded to float32.
"""

import json
import math
import pathlib

import torch

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
BINS = 1000


def gaussian(bin_idx, sigma, truncate):
    distance = torch.arange(BINS, dtype=torch.float64) - bin_idx
    weight = torch.exp(-0.5 * (distance / sigma) ** 2)
    if truncate is not None:
        weight = torch.where(distance.abs() > truncate, torch.zeros_like(weight), weight)
    return weight / weight.sum()


def reference(logits32, labels, slots, ids, options):
    """Means as the `loss` stage reports them, and d loss / d logits."""
    logits = logits32.to(torch.float64).requires_grad_()
    ce = [
        -torch.log_softmax(logits[p - 1], -1)[label]
        for p, label in enumerate(labels)
        if label != -100
    ]
    soft, w1, gate = [], [], []
    for position, bin_idx, _ in slots:
        row = (
            torch.nan_to_num(logits[position - 1], nan=0.0, posinf=1e4, neginf=-1e4).clamp(
                -1e4, 1e4
            )
            / options["temperature_coord"]
        )
        z = row[ids]
        q = gaussian(bin_idx, options["target_sigma"], options["target_truncate"])
        log_p = torch.log_softmax(z, -1)
        soft.append(-(q * log_p).sum())
        w1.append((torch.cumsum(log_p.exp(), 0) - torch.cumsum(q, 0)).abs().sum() / BINS)
        gate.append((torch.logsumexp(row, -1) - torch.logsumexp(z, -1)).clamp(min=0))
    zero = logits.nan_to_num(0, 0, 0).sum() * 0
    mean = lambda values: torch.stack(values).mean() if values else zero
    parts = {"ce": mean(ce), "soft_ce": mean(soft), "w1": mean(w1), "gate": mean(gate)}
    coord = (
        options["soft_ce_weight"] * parts["soft_ce"]
        + options["w1_weight"] * parts["w1"]
        + options["gate_weight"] * parts["gate"]
    )
    loss = parts["ce"] + coord
    loss.backward()
    answer = {name: value.item() for name, value in parts.items()}
    answer.update(coord=coord.item(), loss=loss.item(), ce_count=len(ce), coord_count=len(slots))
    return answer, logits.grad


DEFAULTS = dict(
    target_sigma=2.0,
    target_truncate=None,
    temperature_coord=1.0,
    soft_ce_weight=1.0,
    w1_weight=1.0,
    gate_weight=1.0,
)


def cases():
    generator = torch.Generator().manual_seed(20)
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    vocab = 1150
    ids = torch.randperm(vocab, generator=generator)[:BINS]
    other = torch.tensor(sorted(set(range(vocab)) - set(ids.tolist())))

    def labels_at(length, positions):
        labels = [-100] * length
        for position in positions:
            labels[position] = int(other[torch.randint(len(other), (1,), generator=generator)])
        return labels

    yield (
        "random",
        vocab,
        ids,
        normal(10, vocab) * 3,
        labels_at(10, [1, 2, 5, 9]),
        [[3, 0, "prefix"], [4, 999, "append"], [6, 500, "append"], [7, 17, "prefix"]],
        DEFAULTS,
    )
    yield (
        "other options",
        vocab,
        ids,
        normal(8, vocab) * 5,
        labels_at(8, [2, 7]),
        [[1, 0, "append"], [3, 999, "append"], [4, 3, "append"], [5, 250, "prefix"]],
        dict(
            target_sigma=8.0,
            target_truncate=12.0,
            temperature_coord=0.7,
            soft_ce_weight=0.5,
            w1_weight=2.0,
            gate_weight=0.3,
        ),
    )

    broken = normal(9, vocab)
    broken[0] = math.nan  # a row of NaN
    broken[1] = -math.inf  # a fully masked row
    broken[2, ids[:500]] = math.nan
    broken[2, other[:9]] = math.inf
    broken[3, ids] = -math.inf  # no coord token allowed: the gate is as large as it gets
    broken[4, ids[999]] = 3e4  # beyond the clamp
    broken[4, other] = -3e38
    broken[5] = math.inf
    broken[6, other] = -math.inf  # CE with masked words
    yield (
        "NaN, infinite and huge logits",
        vocab,
        ids,
        broken,
        [-100] * 7 + [int(ids[4]), -100],
        [
            [1, 0, "append"],
            [2, 999, "append"],
            [3, 2, "append"],
            [4, 400, "prefix"],
            [5, 999, "append"],
            [6, 0, "append"],
            [8, 0, "prefix"],
        ],
        DEFAULTS,
    )

    high = normal(6, vocab) * 2 + 9000  # logsumexps near 1e4 whose difference is small
    high[1, other] -= 14
    high[2, ids[700]] += 900
    yield (
        "large common offset",
        vocab,
        ids,
        high,
        labels_at(6, [4, 5]),
        [[1, 1, "append"], [2, 998, "append"], [3, 700, "prefix"]],
        DEFAULTS,
    )
    sharp = normal(4, vocab)
    sharp[0, ids[123]] = 60.0
    sharp[1, other[5]] = 19.0
    labels = [-100, -100, int(other[5]), -100]
    yield (
        "sharp",
        vocab,
        ids,
        sharp,
        labels,
        [[1, 123, "append"], [3, 999, "append"]],
        dict(DEFAULTS, target_sigma=0.05, target_truncate=0.0, temperature_coord=0.05),
    )


def main():
    table, data = [], b""
    for name, vocab, ids, logits, labels, slots, options in cases():
        expect, grad = reference(logits, labels, slots, ids, options)
        table.append(
            dict(
                name=name,
                num_tokens=len(labels),
                vocab=vocab,
                labels=labels,
                coord_slots=slots,
                coord_token_ids=ids.tolist(),
                options=options,
                expect=expect,
            )
        )
        data += (
            logits.numpy().astype("<f4").tobytes()
            + grad.to(torch.float32).numpy().astype("<f4").tobytes()
        )
    (GOLDEN / "mstep_losses.json").write_text(json.dumps(table) + "\n")
    (GOLDEN / "mstep_losses.bin").write_bytes(data)


main()
