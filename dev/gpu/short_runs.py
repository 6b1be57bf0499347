"""Short runs of stage 2 on a random model, and what they say of time and memory."""

import json

from machine import Failed

PHOTOS = "tests/golden/first_run"
PROMPT = "Find every digit and mark."
SYSTEM = "List the objects as JSON."


def random_model(machine):
    """The directory of the random model, made once, and its numbers of parameters."""
    directory, counts = machine.work / "model", machine.work / "model.json"
    if not counts.exists():
        text, _, _ = machine.run(
            [
                machine.python,
                "dev/gpu/random_model.py",
                directory,
                "demo/model",
                "--device",
                machine.device,
                *(["--small"] if machine.small else []),
            ],
            "random_model",
        )
        counts.write_text(text)
    return directory, json.loads(counts.read_text())


def records(machine):
    """A file of 64 records with the four photographs."""
    target = machine.work / "data/train.jsonl"
    if not target.exists():
        machine.run(
            [
                machine.rematch,
                "data",
                "from-coco",
                f"{PHOTOS}/instances_train.json",
                "--images",
                f"{PHOTOS}/photos",
                "--out",
                target.parent,
            ],
            "records",
        )
        target.write_text(target.read_text() * 16)
    return target


def configuration(machine, name, changes):
    """Writes a configuration of stage 2 on the random model (JSON, which is YAML)."""
    directory, _ = random_model(machine)
    data = str(records(machine))
    values = {
        "model": {
            "model": str(directory),
            "torch_dtype": "float32" if machine.small else "bfloat16",
        },
        "template": {"system": SYSTEM},
        "global_max_length": 512 if machine.small else 4096,
        "custom": {
            "trainer_variant": "rollout_matching_sft",
            "train_jsonl": data,
            "val_jsonl": data,
            "user_prompt": PROMPT,
            "coord_tokens": {"enabled": True},
            "coord_soft_ce_w1": {"enabled": True},
            "extra": {
                "rollout_matching": {
                    "rollout_backend": "native",
                    "max_new_tokens": 16 if machine.small else 256,
                }
            },
        },
        "training": {
            "output_dir": str(machine.work),
            "run_name": name,
            "max_steps": 2 if machine.small else 6,
            "learning_rate": 1e-5,
            "per_device_train_batch_size": 2 if machine.small else 16,
            "effective_batch_size": 2 if machine.small else 16,
            "packing": True,
            "logging_steps": 1,
            "logging_first_step": True,
            "save_strategy": "no",
            "save_last_epoch": False,
            "eval_strategy": "no",
            "report_to": "none",
        },
    }
    for key, value in changes.items():
        *path, last = key.split(".")
        part = values
        for step in path:
            part = part.setdefault(step, {})
        part[last] = value
    path = machine.work / f"{name}.yaml"
    path.write_text(json.dumps(values, indent=2))
    return path


def train(machine, name, changes):
    """A short stage 2; returns what its last steps took, its peak of memory and what `rematch plan`
    expected.
    """
    path = configuration(machine, name, changes)
    memory = machine.smi("memory.total")
    size = ["--gpu-memory", f"{int(memory) / 1024:.0f}"] if memory else []
    planned, _, _ = machine.run(
        [
            machine.rematch,
            "plan",
            path,
            "--json",
            "--set",
            f"global_max_length={512 if machine.small else 1024}",
            *size,
        ],
        f"{name}_plan",
    )
    plan = json.loads(planned)
    log = machine.work / name / "logging.jsonl"
    log.unlink(missing_ok=True)
    _, _, peak = machine.run([machine.rematch, "train", path, "--device", machine.device], name)
    steps = [
        line for line in map(json.loads, log.read_text().splitlines()) if "time/step_s" in line
    ]
    if not steps or any(not 0 < line["loss"] < 1e4 for line in steps):
        raise Failed(f"the losses are not sound: {[line.get('loss') for line in steps]}")
    later = steps[1:]  # the first one warms up

    def mean(key):
        return sum(line.get(key, 0.0) for line in later) / len(later)

    numbers = {"loss": round(steps[-1]["loss"], 3)}
    for key in ("step", "rollout_generate", "forward", "backward", "optimizer"):
        numbers[f"{key} s"] = round(mean(f"time/{key}_s"), 3)
    numbers |= {
        "rollout tokens/s": round(mean("rollout/gen_tokens_per_s")),
        "peak GiB": round(peak / 2**30, 2),
        "planned GiB": round(plan["peak_bytes"] / 2**30, 2),
    }
    said = [
        line
        for line in (machine.out / f"{name}.log").read_text().splitlines()
        if "attention: " in line
    ]
    if said:  # on a GPU the program says which kernel it chose
        numbers["attention"] = said[0].partition("attention: ")[2]
    if machine.on_gpu and peak > 1.15 * plan["peak_bytes"]:
        raise Failed(
            f"the run took {numbers['peak GiB']} GiB, planned were {numbers['planned GiB']}: "
            f"{numbers}"
        )
    return numbers, mean("packing/post_rollout_selected_total_len")


def utilisation(machine, numbers, tokens, num_backward):
    """Model FLOPs utilisation of forward and backward: 2 FLOPs a weight of the text layers and
    token forward, `num_backward` times that
    backward. Attention, head and vision tower come on top, so the true share is higher."""
    peaks, (_, counts) = machine.peaks(), random_model(machine)
    numbers["trained tokens"] = round(tokens)
    if peaks:
        flops = 2 * (1 + num_backward) * counts["layers"] * tokens
        numbers["FLOPs utilisation"] = round(
            flops / (numbers["forward s"] + numbers["backward s"]) / (peaks[0] * 1e12), 3
        )
    return numbers
