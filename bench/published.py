#!/usr/bin/env python3
"""A stage-1 LoRA step at published size: the program against transformers + PEFT, on a checkpoint
of a published shape with random weights.

usage: bench/published.py build/release/bin/rematch [--shape Qwen3-VL-2B-Instruct]
[--layers N] [--dtype bfloat16] [--dropout 0.05] [--images 4] [--side 448] [--steps 2] [--rounds 1]
[--threads 2] [--checkpointing true] [--program-only] [--work DIR] [--json OUT] --real DIR

DIR holds configuration, tokenizer, template and processor of published checkpoints, one folder a
shape.

Both sides train LoRA of rank 8 on the Linears of the language model, with gradient checkpointing,
on the same records, whose tokens must be as many, with losses within .01. `--checkpointing false
true selective` adds sides of the program with other values. Sides take turns, each in a process of its own; the first step of a turn is left out. The share of the matmul
limit compares the step with its products alone, timed in the same run.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYSTEM, USER = "You are a helpful assistant.", "Locate every object."
RANK, ALPHA, RATE = 8, 16, 1e-4
TEXT_LINEARS = (
    r".*language_model\.layers\.\d+\.(self_attn|linear_attn|mlp)\."
    r"([qkvo]_proj|in_proj_qkv|in_proj_z|out_proj|gate_proj|up_proj|down_proj)"
)


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


# The Python side.


def answer_of(record):
    objects = sorted(record["objects"], key=lambda item: (item["bbox_2d"][1], item["bbox_2d"][0]))
    written = lambda bins: [int(value * 1000 / 999 + 0.5) for value in bins]  # BEHAVIOUR 19.3
    rows = ",\n".join(
        f'\t{{"bbox_2d": {json.dumps(written(item["bbox_2d"]))}, "label": "{item["desc"]}"}}'
        for item in objects
    )
    return f"```json\n[\n{rows}\n]\n```"


class PythonSide:
    def __init__(self, options):
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast

        torch.set_num_threads(options.threads)
        self.torch, self.dtype = torch, getattr(torch, options.dtype)
        work = pathlib.Path(options.work)
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(work / "model/tokenizer.json"))
        self.template = (work / "model/chat_template.jinja").read_text()
        base = AutoModelForImageTextToText.from_pretrained(
            work / "model", dtype=self.dtype, attn_implementation="sdpa"
        )
        base.gradient_checkpointing_enable({"use_reentrant": False})
        base.enable_input_require_grads()
        settings = LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=options.dropout, target_modules=TEXT_LINEARS
        )
        self.model = get_peft_model(base, settings)
        self.model.train()
        trained = [tensor for tensor in self.model.parameters() if tensor.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=RATE)
        records = map(json.loads, (work / "train.jsonl").read_text().splitlines())
        self.rows = [self.encode(record, work) for record in records]

    def encode(self, record, work):
        import numpy
        from PIL import Image

        picture = Image.open(work / record["images"][0]).convert("RGB")
        pixels = (numpy.asarray(picture, dtype=numpy.float32) / 255 - 0.5) / 0.5
        rows, columns = pixels.shape[0] // 16, pixels.shape[1] // 16
        blocks = numpy.stack([pixels.transpose(2, 0, 1)] * 2).reshape(
            2, 3, rows // 2, 2, 16, columns // 2, 2, 16
        )
        patches = blocks.transpose(2, 5, 3, 6, 1, 0, 4, 7).reshape(rows * columns, -1)
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": USER}]},
        ]
        prompt = self.tokenizer.apply_chat_template(
            messages,
            chat_template=self.template,
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,
        ).replace("<|image_pad|>", "<|image_pad|>" * (rows * columns // 4))
        ids = lambda text: self.tokenizer(text, add_special_tokens=False)["input_ids"]
        first, taught = ids(prompt), ids(answer_of(record) + "<|im_end|>")
        tensor = self.torch.tensor
        token_ids = tensor([first + taught])
        return dict(
            input_ids=token_ids,
            attention_mask=self.torch.ones_like(token_ids),
            mm_token_type_ids=(token_ids == self.model.config.image_token_id).int(),
            labels=tensor([[-100] * len(first) + taught]),
            pixel_values=self.torch.from_numpy(patches.copy()).to(self.dtype),
            image_grid_thw=tensor([[1, rows, columns]]),
        )

    def step(self):
        start, losses = time.perf_counter(), []
        for row in self.rows:
            with self.torch.autocast("cpu", self.dtype, self.dtype != self.torch.float32):
                loss = self.model(**row, use_cache=False).loss
            (loss / len(self.rows)).backward()
            losses.append(loss.item())
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return time.perf_counter() - start, statistics.mean(losses)

    def num_tokens(self):
        return sum(row["input_ids"].shape[1] for row in self.rows)


def run_python_side(options):
    side = PythonSide(options)
    first, *steps = [side.step() for _ in range(options.steps + 1)]
    print(
        json.dumps(
            {
                "step_s": statistics.median(seconds for seconds, _ in steps),
                "loss": first[1],  # before an update: adapters begin with other values
                "tokens": side.num_tokens(),
            }
        )
    )


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
    return {
        "step_s": statistics.median(line["time/step_s"] for line in taken),
        "loss": lines[0]["loss"],
        "tokens": taken[0].get("packing/post_rollout_selected_total_len"),
        "peak_gib": peak,
    }


def run_python(options):
    command = [sys.executable, __file__, "--python-side", "--work", options.work]
    for name in ("dropout", "steps", "threads", "dtype"):
        command += [f"--{name}", str(getattr(options, name))]
    output, peak = measured(command, options)
    return {**json.loads(output.splitlines()[-1]), "peak_gib": peak}


def matmul_seconds(options, num_tokens):
    """Seconds of the products that a step with gradient checkpointing cannot avoid: three a token
    and base weight of the language model (forward, again, gradient of the input)."""
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
    return 3 * seconds * text["num_hidden_layers"]


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
    sides = {
        name: {key: statistics.median(turn[key] for turn in ones) for key in ones[0]}
        for name, ones in turns.items()
    }
    show(options, sides)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(sides, indent=2) + "\n")


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
    limits = {name: options.images * matmul_seconds(options, rows) for name in sides}
    packed_limit = matmul_seconds(options, other["tokens"])
    limits |= {name: packed_limit for name in sides if name.endswith("packed")}
    print(
        f"{options.shape}, {options.dtype}, {options.images} rows of {rows} tokens, "
        f"lora_dropout {options.dropout}, {options.threads} threads\n"
    )
    print("| side | s a step | tokens/s | faster by | times its matmuls | peak GiB | loss |")
    print("|---|---|---|---|---|---|---|")
    for name, one in sides.items():
        speed, ratio = one["tokens"] / one["step_s"], other["step_s"] / one["step_s"]
        print(
            f"| {name} | {one['step_s']:.2f} | {speed:.1f} | {ratio:.2f} | {one['step_s'] / limits[name]:.2f} | {one['peak_gib']:.2f} | {one['loss']:.4f} |"
        )
    if any(one["tokens"] != other["tokens"] for one in sides.values()):
        sys.exit("the sides trained on different numbers of tokens")
    if max(abs(one["loss"] - other["loss"]) for one in sides.values()) > 0.01:
        sys.exit("the losses differ: these numbers compare different work")


if __name__ == "__main__":
    main()
