#!/usr/bin/env python3
"""A LoRA step at published size: the program against transformers + PEFT, on a checkpoint of a
published shape with random weights.

usage: bench/published.py build/release/bin/rematch [--shape Qwen3-VL-2B-Instruct]
[--layers N] [--dtype bfloat16] [--dropout 0.05] [--images 4] [--side 448] [--steps 2] [--rounds 1]
[--threads 2] [--checkpointing true] [--answers 64] [--program-only] [--work DIR] [--json OUT]
--real DIR

DIR holds configuration, tokenizer, template and processor of published checkpoints, one folder a
shape.

Both sides train LoRA of rank 8 on the Linears of the language model, with gradient checkpointing,
on the same records, whose tokens must be as many, with losses within .01. `--checkpointing false
true selective` adds sides of the program with other values; `--program-only` leaves out the other
side. With `--answers N` it is a step of stage 2: first answers of N tokens to all images at once.
Random weights answer nothing that can be read, so that the rows are those of stage 1. Sides take
turns, each in a process of its own; the first step of a turn is left out. "Times its matmuls"
compares a step with the products that its checkpointing needs, timed in the same run.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from published_python import ALPHA, RANK, RATE, SYSTEM, USER, run_python_side

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROLLOUT = "custom.extra.rollout_matching"


# Checkpoint and records.


def make_checkpoint(options, directory):
    """Weights of N(0, .02), and the published files beside them."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    dtype = getattr(torch, options.dtype)
    config = AutoConfig.from_pretrained(options.real / options.shape)
    if options.layers:
        config.text_config.num_hidden_layers = options.layers
        if getattr(config.text_config, "layer_types", None):
            config.text_config.layer_types = config.text_config.layer_types[: options.layers]
    torch.manual_seed(0)
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config, dtype=dtype)
    model = model.to_empty(device="cpu")
    for name, tensor in model.state_dict().items():
        if "norm" in name and name.endswith("weight"):
            tensor.fill_(1)
        elif tensor.is_floating_point():
            tensor.normal_(0, 0.02)
    model.tie_weights()
    model.save_pretrained(directory)
    for file in (options.real / options.shape).iterdir():
        if file.name != "config.json":
            shutil.copy(file, directory)


def make_records(directory, count, side):
    """Pictures of coloured boxes, four objects each."""
    import random

    from PIL import Image, ImageDraw

    draw_from = random.Random(0)
    lines = []
    for index in range(count):
        picture = Image.new("RGB", (side, side), (230, 230, 230))
        objects = []
        for name in ("red box", "green box", "blue box", "yellow box"):
            x, y = draw_from.randint(0, 700), draw_from.randint(0, 700)
            box = [x, y, x + draw_from.randint(100, 299), y + draw_from.randint(100, 299)]
            ImageDraw.Draw(picture).rectangle(
                [value * side / 1000 for value in box], fill=name.split()[0]
            )
            objects.append({"desc": name, "bbox_2d": box})
        picture.save(directory / f"{index}.png")
        lines.append(
            {"images": [f"{index}.png"], "objects": objects, "width": side, "height": side}
        )
    path = directory / "train.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# The program's side.


def program_settings(options, directory, packed, checkpointing):
    work = pathlib.Path(options.work)
    settings = {
        "model.model": work / "model",
        "model.torch_dtype": options.dtype,
        "tuner.train_type": "lora",
        "tuner.lora_rank": RANK,
        "tuner.lora_alpha": ALPHA,
        "tuner.lora_dropout": options.dropout,
        "tuner.freeze_vit": "true",
        "tuner.freeze_aligner": "true",
        "custom.trainer_variant": "sft",
        "custom.answer_format": "qwen_json",
        "custom.object_ordering": "sorted",
        "custom.train_jsonl": work / "train.jsonl",
        "custom.user_prompt": USER,
        "template.system": SYSTEM,
        "template.max_pixels": 2 * options.side**2,
        "global_max_length": options.images * 1024,
        "training.output_dir": directory,
        "training.run_name": "run",
        "training.packing": str(packed).lower(),
        "training.packing_drop_last": "false",
        "training.gradient_checkpointing": checkpointing,
        "training.per_device_train_batch_size": 1,
        "training.effective_batch_size": 1 if packed else options.images,
        "training.max_steps": options.steps + 1,
        "training.num_train_epochs": options.steps + 1,
        "training.learning_rate": RATE,
        "training.logging_steps": 1,
        "training.save_strategy": "no",
        "training.save_last_epoch": "false",
        "training.report_to": "none",
        "training.eval_strategy": "no",
    }
    if options.answers:
        settings |= {
            "custom.trainer_variant": "rollout_matching_sft",
            f"{ROLLOUT}.rollout_backend": "native",
            f"{ROLLOUT}.max_new_tokens": options.answers,
            f"{ROLLOUT}.rollout_generate_batch_size": options.images,
            f"{ROLLOUT}.target_policy": "rewrite",
            f"{ROLLOUT}.post_rollout_pack_scope": "window",
            "training.per_device_train_batch_size": options.images,
            "training.effective_batch_size": options.images,
            "training.packing_drop_last": "true",
        }
    return [f"{key}={value}" for key, value in settings.items()]


def measured(command, options):
    """Output of a process, and the most memory it held, in GiB."""
    environment = dict(
        os.environ,
        OMP_NUM_THREADS=str(options.threads),
        MKL_NUM_THREADS=str(options.threads),
        HF_HUB_OFFLINE="1",
    )
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), log.seek(0)
        if process.returncode != 0:
            sys.exit(out.read()[-1000:] + log.read()[-3000:])
        return out.read(), usage.ru_maxrss / 2**20


def run_program(options, packed, checkpointing):
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "run.yaml"
        config.write_text("{}\n")
        command = [options.binary, "train", str(config)]
        for setting in program_settings(options, directory, packed, checkpointing):
            command += ["--set", setting]
        _, peak = measured(command, options)
        log = pathlib.Path(directory) / "run/logging.jsonl"
        lines = [line for line in map(json.loads, log.read_text().splitlines()) if "loss" in line]
    taken = lines[1:]
    answered = {line.get("rollout/gen_new_tokens_mean", options.answers) for line in taken}
    if answered != {options.answers}:
        sys.exit(f"answers of {answered} tokens, not of {options.answers} as on the other side")
    return {
        "step_s": statistics.median(line["time/step_s"] for line in taken),
        "rollout_s": statistics.median(line.get("time/rollout_generate_s", 0) for line in taken),
        "loss": lines[0]["loss"],
        "tokens": taken[0].get("packing/post_rollout_selected_total_len"),
        "peak_gib": peak,
    }


def run_python(options):
    command = [sys.executable, __file__, "--python-side", "--work", options.work]
    for name in ("dropout", "steps", "threads", "dtype", "answers"):
        command += [f"--{name}", str(getattr(options, name))]
    output, peak = measured(command, options)
    return {**json.loads(output.splitlines()[-1]), "peak_gib": peak}


def matmul_seconds(options, num_tokens):
    """Seconds of one product for each token and base weight of the language model."""
    import torch

    torch.set_num_threads(options.threads)
    config = json.loads((pathlib.Path(options.work) / "model/config.json").read_text())
    text = config.get("text_config", config)
    hidden, inner = text["hidden_size"], text["intermediate_size"]
    head = text.get("head_dim", hidden // text["num_attention_heads"])
    queries, keys = head * text["num_attention_heads"], head * text["num_key_value_heads"]
    sizes = [(queries, hidden), (keys, hidden), (keys, hidden), (hidden, queries)]
    sizes += [(inner, hidden), (inner, hidden), (hidden, inner)]
    dtype = getattr(torch, options.dtype)
    seconds = 0.0
    for outputs, inputs in sizes:
        x, weight = (
            torch.randn(num_tokens, inputs).to(dtype),
            torch.randn(outputs, inputs).to(dtype),
        )
        torch.nn.functional.linear(x, weight)
        start = time.perf_counter()
        torch.nn.functional.linear(x, weight)
        seconds += time.perf_counter() - start
    return seconds * text["num_hidden_layers"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--shape", default="Qwen3-VL-2B-Instruct")
    parser.add_argument("--real", type=pathlib.Path)
    parser.add_argument("--layers", type=int, help="only so many, for a quick look")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--side", type=int, default=448)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--checkpointing", nargs="+", default=["true"], choices=["false", "true", "selective"]
    )
    parser.add_argument("--answers", type=int, default=0, help="tokens of each; 0 = stage 1")
    parser.add_argument("--program-only", action="store_true", help="without transformers")
    parser.add_argument("--work", default="output/published", help="keeps the checkpoint")
    parser.add_argument("--json")
    parser.add_argument("--python-side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python_side:
        return run_python_side(options)
    if not options.real or not (options.real / options.shape / "config.json").exists():
        parser.error(f"--real: a directory with {options.shape}/config.json and its tokenizer")
    work = pathlib.Path(options.work) / f"{options.shape}-{options.layers or 'all'}-{options.dtype}"
    options.work = str(work.resolve())
    if not (work / "model/config.json").exists():
        make_checkpoint(options, work / "model")
    make_records(work, options.images, options.side)
    turns = {}
    for _ in range(options.rounds):
        take_turn(options, turns)
    sides = {name: medians(ones) for name, ones in turns.items()}
    show(options, sides)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(sides, indent=2) + "\n")


def medians(turns):
    """The median of each number, and the number of tokens, which is the same in each turn."""
    return {
        **{key: statistics.median(turn[key] for turn in turns) for key in turns[0]},
        "tokens": turns[0]["tokens"],
    }


def take_turn(options, turns):
    for value in options.checkpointing:
        name = "program" if value == "true" else f"program, {value}"
        packed = run_program(options, packed=True, checkpointing=value)
        # A log line counts the tokens of packed rows only.
        single = {
            **run_program(options, packed=False, checkpointing=value),
            "tokens": packed["tokens"],
        }
        turns.setdefault(name, []).append(single)
        turns.setdefault(f"{name}, packed", []).append(packed)
    if not options.program_only:
        turns.setdefault("transformers + PEFT", []).append(run_python(options))


def show(options, sides):
    other = sides.get("transformers + PEFT", next(iter(sides.values())))
    rows = other["tokens"] // options.images
    of_rows = options.images * matmul_seconds(options, rows)
    of_packed = matmul_seconds(options, other["tokens"])

    def limit(name):
        # forward, the input's gradient, and forward again where no results are kept
        products = 2 if "false" in name or "selective" in name else 3
        return products * (of_packed if name.endswith("packed") else of_rows)

    print(
        f"{options.shape}, {options.dtype}, {options.images} rows of {rows} tokens, "
        f"lora_dropout {options.dropout}, {options.threads} threads, answers of {options.answers}\n"
    )
    print(
        "| side | s a step | of it answers | tokens/s | faster by | times its matmuls | peak GiB "
        "| loss |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, one in sides.items():
        speed, ratio = one["tokens"] / one["step_s"], other["step_s"] / one["step_s"]
        times = (one["step_s"] - one["rollout_s"]) / limit(name)
        print(
            f"| {name} | {one['step_s']:.2f} | {one['rollout_s']:.2f} | {speed:.1f} | {ratio:.2f} "
            f"| {times:.2f} "
            f"| {one['peak_gib']:.2f} | {one['loss']:.4f} |"
        )
    if any(one["tokens"] != other["tokens"] for one in sides.values()):
        sys.exit("the sides trained on different numbers of tokens")
    if max(abs(one["loss"] - other["loss"]) for one in sides.values()) > 0.01:
        sys.exit("the losses differ: these numbers compare different work")


if __name__ == "__main__":
    main()
