"""Parts of scripts/gpu-check that need several GPUs. With --small they run on two ranks of the CPU,
over Gloo.
"""

import json

from machine import CannotRun, Failed
from short_runs import configuration

LINK_BYTES, SMALL_LINK_BYTES = 10**9, 10**6


def num_ranks(machine):
    if machine.small:
        return 2
    if machine.num_gpus() < 2:
        raise CannotRun("two ranks over NCCL need two GPUs")
    return machine.num_gpus()


def on_ranks(machine, count, command, name):
    """What the command wrote on `count` ranks: standard output, and all of it."""
    launcher = ["-m", "torch.distributed.run", "--no-python", "--nproc-per-node", count]
    text, _, _ = machine.run([machine.python, *launcher, *command], name)
    return text, text + (machine.out / f"{name}.log").read_text()


def links(machine):
    program = machine.root / "build/release/tests/link_speed"
    if not program.exists():
        raise CannotRun(f"{program} is not built: scripts/build")
    size, device = (SMALL_LINK_BYTES, "cpu") if machine.small else (LINK_BYTES, "auto")
    text, _ = on_ranks(machine, num_ranks(machine), [program, size, device], "links")
    numbers = json.loads(text.splitlines()[-1])
    if not machine.small and numbers["on"] != "NCCL":
        raise Failed(f"the ranks did not use NCCL: {machine.out}/links.log")
    return {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in numbers.items()
    }


def losses_of(machine, name, changes):
    """Losses of three steps on two ranks."""
    path = configuration(machine, name, {"training.max_steps": 3, **changes})
    log = machine.work / name / "logging.jsonl"
    log.unlink(missing_ok=True)
    command = [machine.rematch, "train", path, "--device", "cpu" if machine.small else "auto"]
    _, said = on_ranks(machine, 2, command, name)
    if not machine.small and "(NCCL)" not in said:
        raise Failed(f"the ranks did not use NCCL: {machine.out}/{name}.log")
    losses = [
        line["loss"]
        for line in map(json.loads, log.read_text().splitlines())
        if "loss" in line and "time/step_s" in line
    ]
    if len(losses) < 3 or any(not 0 < loss < 1e4 for loss in losses):
        raise Failed(f"{name}: the losses are not sound: {losses}")
    return losses


def ranks(machine):
    """Shared frozen weights give the losses of whole ones."""
    num_ranks(machine)
    sharing = losses_of(machine, "ranks_zero_2", {"training.zero_stage": 2})
    stage1 = {
        "custom.trainer_variant": "sft",
        "custom.extra": {},
        "tuner.train_type": "lora",
        "tuner.lora_dropout": 0,
    }
    whole = losses_of(machine, "ranks_whole", {**stage1, "training.zero_stage": 0})
    shards = losses_of(machine, "ranks_zero_3", {**stage1, "training.zero_stage": 3})
    if any(abs(a - b) > 1e-3 * abs(a) for a, b in zip(whole, shards)):
        raise Failed(f"losses with zero_stage 3 are {shards}, with 0 {whole}")
    return {
        "losses with zero_stage 2": " ".join(f"{loss:.3f}" for loss in sharing),
        "with frozen shards": " ".join(f"{loss:.3f}" for loss in shards),
    }
