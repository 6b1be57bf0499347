"""Parts of scripts/gpu-check that answer: recorded steps, seconds a token, tokens a second."""

import json
import time

from machine import CannotRun, Failed
from short_runs import PROMPT, SYSTEM, random_model

HF_TOKEN_LIMIT_S = 0.1


def generate(machine, name, backend, batch, length):
    """Answers of `length` tokens to the same prompt; returns the seconds, start of the program
    included, and the answers.
    """
    directory, _ = random_model(machine)
    line = {
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}],
        "images": [],
        "max_new_tokens": length,
        "temperature": 0.0,
        "repetition_penalty": 1.0,
        "seed": 0,
    }
    text = "".join(json.dumps({"id": i, **line}) + "\n" for i in range(batch))
    dtype = "float32" if machine.small else "bfloat16"
    begin = time.monotonic()
    out, _, _ = machine.run(
        [
            machine.stages,
            "stage",
            "generate",
            "--model",
            directory,
            "--backend",
            backend,
            "--dtype",
            dtype,
            "--device",
            machine.device,
            "--batch-size",
            batch,
        ],
        name,
        text,
    )
    return time.monotonic() - begin, [json.loads(answer) for answer in out.splitlines()]


def hf_tokens(machine):
    """Seconds a generated token of hf: above a limit a kernel builds a plan for every length."""
    short, long = (4, 12) if machine.small else (16, 144)
    first, _ = generate(machine, "hf_tokens_short", "hf", 1, short)
    second, _ = generate(machine, "hf_tokens_long", "hf", 1, long)
    seconds = max(0.0, second - first) / (long - short)
    if machine.on_gpu and seconds > HF_TOKEN_LIMIT_S:
        raise Failed(f"{seconds:.3f} s a token, the limit is {HF_TOKEN_LIMIT_S} s")
    return {"s/token": round(seconds, 4)}


def graphs(machine):
    """native replays recorded steps on a GPU; its answers are those of hf, which does not."""
    if not machine.on_gpu:
        raise CannotRun("recorded steps exist on GPUs only")
    length = 64
    _, replayed = generate(machine, "graphs_native", "native", 8, length)
    _, plain = generate(machine, "graphs_hf", "hf", 8, length)
    log = (machine.out / "graphs_native.log").read_text()
    if "has no graphs of devices" in log:
        raise CannotRun(log.strip())
    if "without recorded graphs" in log:
        raise Failed(f"the device did not record steps: {log.strip()[:300]}")
    # Sums in bfloat16 differ by the kernel: two nearly equal logits may part two answers, seldom
    # early.
    same = sum(
        next(
            (
                i
                for i, (a, b) in enumerate(zip(x["response_token_ids"], y["response_token_ids"]))
                if a != b
            ),
            length,
        )
        for x, y in zip(replayed, plain)
    )
    share = same / (8 * length)
    if share < 0.25:
        raise Failed(f"the answers of native and hf part after {share:.0%} of their tokens")
    return {"same tokens before parting": f"{share:.0%}"}


def speed(machine):
    numbers, (short, long) = {}, (4, 20) if machine.small else (32, 1056)
    directory, counts = random_model(machine)
    peaks, ids = machine.peaks(), None
    for batch in (1, 4 if machine.small else 64):
        for backend in ("native", "hf"):
            name = f"speed_{backend}_{batch}"
            (first, answers), (second, more) = (
                generate(machine, f"{name}_{length}", backend, batch, length)
                for length in (short, long)
            )
            ids = answers[0]["prompt_token_ids"]
            tokens = sum(
                len(b["response_token_ids"]) - len(a["response_token_ids"])
                for a, b in zip(answers, more)
            )
            if (
                second - first < 0.2 * first
            ):  # the start of the program takes longer or shorter by as much
                numbers[f"{backend} x{batch} tokens/s"] = "too quick to be timed"
                continue
            rate = tokens / (second - first)
            numbers[f"{backend} x{batch} tokens/s"] = round(rate)
            if batch == 1 and backend == "native" and peaks:
                numbers["bandwidth share of decoding"] = round(
                    2 * (counts["layers"] + counts["embedding"]) * rate / (peaks[1] * 1e9), 3
                )
        out, code, _ = machine.run(
            [
                machine.python,
                "dev/gpu/transformers_speed.py",
                directory,
                batch,
                short,
                long,
                machine.device,
            ],
            f"speed_transformers_{batch}",
            json.dumps(ids),
            codes=(0, 77),
        )
        if code == 0:
            numbers[f"transformers x{batch} tokens/s"] = round(
                json.loads(out.splitlines()[-1])["tokens_per_s"]
            )
        else:
            numbers["transformers"] = "not installed"
    return numbers
