"""Writes tests/golden/rollout_processors.jsonl: what transformers' logits processors make of random
logits.

Each case: logits, ids seen so far, options and the processed scores (null = removed).
Run from the repository root: .venv/bin/python dev/goldens/rollout_processors.py
"""

import json
import pathlib

import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

OUT = pathlib.Path("tests/golden/rollout_processors.jsonl")
OPTIONS = [
    dict(repetition_penalty=1.3),
    dict(repetition_penalty=0.7),
    dict(temperature=0.7),
    dict(temperature=1.0, top_k=5),
    dict(temperature=1.0, top_k=1),
    dict(temperature=1.0, top_k=1000),
    dict(temperature=1.0, top_p=0.9),
    dict(temperature=1.0, top_p=0.1),
    dict(temperature=1.0, top_p=0.0),
    dict(temperature=1.7, top_k=20, top_p=0.8, repetition_penalty=1.2),
    dict(temperature=0.3, top_k=7, top_p=0.5, repetition_penalty=1.05),
]


def processors(options):
    chain = LogitsProcessorList()
    if options.get("repetition_penalty", 1.0) != 1.0:
        chain.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    if "temperature" in options:
        if options["temperature"] != 1.0:
            chain.append(TemperatureLogitsWarper(options["temperature"]))
        if options.get("top_k", 0) > 0:
            chain.append(TopKLogitsWarper(options["top_k"]))
        if options.get("top_p", 1.0) < 1.0:
            chain.append(TopPLogitsWarper(options["top_p"]))
    return chain


def main():
    generator = torch.Generator().manual_seed(11)
    cases = []
    for spread in (0.5, 3.0):
        for index, options in enumerate(OPTIONS):
            logits = torch.randn(64, generator=generator) * spread
            if (
                index % 2 == 1 and "top_p" not in options
            ):  # ties, also at the boundary (torch's sort leaves their order open)
                logits[10] = logits[20] = logits.max()
                logits = torch.round(logits * 8) / 8
            seen = torch.randint(0, 64, (12,), generator=generator).tolist()
            scores = processors(options)(torch.tensor([seen]), logits[None].clone())[0]
            cases.append(
                dict(
                    logits=logits.tolist(),
                    seen=seen,
                    options=options,
                    scores=[None if value == float("-inf") else value for value in scores.tolist()],
                )
            )
    OUT.write_text("\n".join(json.dumps(case) for case in cases) + "\n")


if __name__ == "__main__":
    main()
