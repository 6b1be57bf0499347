"""Parts of scripts/gpu-check that train on one GPU."""

import json

from machine import CannotRun, Failed
from short_runs import train, utilisation


def lora(machine):
    """With and without dropout: masks are drawn on the device, so they cost next to nothing."""
    plain, _ = train(machine, "lora_plain", {"tuner.train_type": "lora", "tuner.lora_dropout": 0})
    numbers, tokens = train(
        machine, "lora", {"tuner.train_type": "lora", "tuner.lora_dropout": 0.05}
    )
    passes = [one["forward s"] + one["backward s"] for one in (plain, numbers)]
    numbers["dropout costs"] = f"{passes[1] / passes[0] - 1:.0%}"
    if machine.on_gpu and passes[1] > 1.25 * passes[0]:
        raise Failed(f"dropout takes a pass from {passes[0]:.3f} to {passes[1]:.3f} s")
    return utilisation(machine, numbers, tokens, 1)


def full(machine):
    numbers, tokens = train(machine, "full", {})
    return utilisation(machine, numbers, tokens, 2)


def windows(machine):
    """Three windows of `native`: the cache of a later one must not shrink, because torch's
    allocator keeps memory of the update.
    """
    numbers, _ = train(machine, "windows", {"training.max_steps": 3})
    lines = map(json.loads, (machine.work / "windows" / "logging.jsonl").read_text().splitlines())
    seconds = [
        line["time/rollout_generate_s"] for line in lines if "time/rollout_generate_s" in line
    ]
    if len(seconds) < 3:
        raise Failed(f"{len(seconds)} windows of 3 were answered")
    if machine.on_gpu and seconds[2] > 1.5 * seconds[1]:
        raise Failed(f"the third window took {seconds[2]:.2f} s, the second {seconds[1]:.2f} s")
    return {"windows s": " ".join(f"{one:.2f}" for one in seconds), "peak GiB": numbers["peak GiB"]}


def vllm(machine):
    text, _, _ = machine.run([machine.rematch, "doctor", "--device", machine.device], "vllm_doctor")
    if not any(
        line.split()[:1] == ["vllm"] and line.endswith(" ready") for line in text.splitlines()
    ):
        raise CannotRun(
            f"no environment with vLLM: scripts/setup-vllm; {machine.out}/vllm_doctor.out"
        )
    rollout = "custom.extra.rollout_matching."
    numbers, _ = train(
        machine,
        "vllm",
        {
            rollout + "rollout_backend": "vllm",
            rollout + "vllm.tensor_parallel_size": 1,
            "training.max_steps": 3,
        },
    )
    return numbers
