"""Writes tests/golden/mstep_adamw.json (torch.optim.AdamW, clip_grad_norm_) and
tests/golden/mstep_schedules.json (transformers.get_scheduler).

Run: OMP_NUM_THREADS=1 .venv/bin/python dev/goldens/mstep_optim.py
"""

import json
import pathlib

import torch
from transformers import get_scheduler

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
NUM_STEPS = 20


def adamw_case(dtype, beta1, beta2, epsilon):
    generator = torch.Generator().manual_seed(7)
    shapes, rates, decays = [(4, 5), (6,), (3, 2)], [3e-3, 1e-2, 5e-4], [0.1, 0.0, 0.3]
    start = [torch.randn(s, generator=generator).to(dtype) for s in shapes]
    masters = [torch.nn.Parameter(p.to(torch.float32).clone()) for p in start]
    optimizer = torch.optim.AdamW(
        [dict(params=[p], lr=r, weight_decay=d) for p, r, d in zip(masters, rates, decays)],
        betas=(beta1, beta2),
        eps=epsilon,
        foreach=False,
        fused=False,
    )
    steps = []
    for step in range(NUM_STEPS):
        factor = 1.0 - step / 40
        grads = [
            (torch.randn(s, generator=generator) * 10 ** (step % 5 - 3)).to(dtype) for s in shapes
        ]
        if step == 4:
            grads[1] = None  # a parameter that takes no part in a step
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * factor
        for p, g in zip(masters, grads):
            p.grad = None if g is None else g.to(torch.float32)
        optimizer.step()
        flat = lambda tensors: [
            None if t is None else t.detach().to(torch.float32).flatten().tolist() for t in tensors
        ]
        steps.append(
            dict(
                factor=factor,
                grads=flat(grads),
                masters=flat(masters),
                parameters=flat([p.detach().to(dtype) for p in masters]),
            )
        )
    return dict(
        dtype=str(dtype).removeprefix("torch."),
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        shapes=shapes,
        rates=rates,
        decays=decays,
        start=[p.to(torch.float32).flatten().tolist() for p in start],
        steps=steps,
    )


def clip_case(scale, max_norm):
    generator = torch.Generator().manual_seed(9)
    grads = [torch.randn(s, generator=generator) * scale for s in [(3, 4), (5,), (2, 2)]]
    parameters = [torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
    for p, g in zip(parameters, grads):
        p.grad = g.clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return dict(
        max_norm=max_norm,
        grads=[g.flatten().tolist() for g in grads],
        norm=norm.item(),
        clipped=[p.grad.flatten().tolist() for p in parameters],
    )


def schedule_case(name, warmup, total, kwargs, rate=2e-4):
    optimizer = torch.optim.AdamW(
        [dict(params=[torch.nn.Parameter(torch.zeros(1))], lr=0.5)], lr=rate
    )
    scheduler = get_scheduler(
        name,
        optimizer,
        num_warmup_steps=warmup,
        num_training_steps=total,
        scheduler_specific_kwargs=kwargs,
    )
    factors = [scheduler.lr_lambdas[0](step) for step in range(total + 6)]
    return dict(
        type=name,
        num_warmup_steps=warmup,
        num_training_steps=total,
        kwargs=kwargs,
        learning_rate=rate,
        factors=[float(f) for f in factors],
    )


def main():
    adamw = dict(
        adamw=[
            adamw_case(torch.float32, 0.9, 0.999, 1e-8),
            adamw_case(torch.float32, 0.8, 0.95, 1e-6),
            adamw_case(torch.bfloat16, 0.9, 0.95, 1e-8),
        ],
        clip=[clip_case(1.0, 1.0), clip_case(0.01, 1.0), clip_case(30.0, 0.5)],
    )
    (GOLDEN / "mstep_adamw.json").write_text(json.dumps(adamw) + "\n")
    schedules = []
    for warmup, total in [(0, 10), (3, 17), (1, 1), (5, 5), (9, 4), (0, 0), (40, 150)]:
        for name in ["constant", "constant_with_warmup", "linear"]:
            schedules.append(schedule_case(name, warmup, total, {}))
        for kwargs in [{}, {"num_cycles": 1.7}]:
            schedules.append(schedule_case("cosine", warmup, total, kwargs))
        for floor in [
            {"min_lr": 1e-5},
            {"min_lr_rate": 0.3},
            {"min_lr_rate": 0.0, "num_cycles": 2.5},
        ]:
            schedules.append(schedule_case("cosine_with_min_lr", warmup, total, floor))
            schedules.append(schedule_case("cosine_warmup_with_min_lr", warmup, total, floor))
            schedules.append(
                schedule_case(
                    "cosine_warmup_with_min_lr", warmup, total, dict(floor, warmup_lr_rate=0.25)
                )
            )
    (GOLDEN / "mstep_schedules.json").write_text(json.dumps(schedules) + "\n")


main()
