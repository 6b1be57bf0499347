#!/usr/bin/env python3
"""Compares `rematch plan` with the measured peak memory of real runs on the CPU: six small random
models and configurations, two steps each.

usage: bench/plan.py build/release/bin/rematch [--only NAME] [--json OUT]      needs the .venv
(transformers makes the models)
       bench/plan.py build/release/bin/rematch --table                         the table of
       docs/plan.md, planned only

The peak is the kernel's (ru_maxrss of the process), so it has everything: libtorch, the heap's
fragments, scratch memory of libraries.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch
from PIL import Image
from transformers import Qwen3VLForConditionalGeneration

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "dev" / "goldens"))
from model_tiny import configuration  # noqa: E402

SIDE = 512  # of an image, in pixels: 256 visual tokens

MODELS = {
    "m27": dict(
        text=dict(
            vocab_size=12000,
            hidden_size=384,
            intermediate_size=1152,
            num_hidden_layers=8,
            num_attention_heads=6,
            num_key_value_heads=3,
            head_dim=64,
        ),
        vision=dict(
            depth=6,
            hidden_size=256,
            intermediate_size=768,
            num_heads=4,
            out_hidden_size=384,
            deepstack_visual_indexes=[1, 3],
        ),
        tie_word_embeddings=True,
    ),
    "m60": dict(
        text=dict(
            vocab_size=20000,
            hidden_size=512,
            intermediate_size=1536,
            num_hidden_layers=10,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=64,
        ),
        vision=dict(
            depth=8,
            hidden_size=320,
            intermediate_size=1024,
            num_heads=4,
            out_hidden_size=512,
            deepstack_visual_indexes=[1, 3, 5],
        ),
        tie_word_embeddings=True,
    ),
    "m100": dict(
        text=dict(
            vocab_size=32000,
            hidden_size=640,
            intermediate_size=1792,
            num_hidden_layers=10,
            num_attention_heads=10,
            num_key_value_heads=2,
            head_dim=64,
        ),
        vision=dict(
            depth=6,
            hidden_size=256,
            intermediate_size=1024,
            num_heads=4,
            out_hidden_size=640,
            deepstack_visual_indexes=[1, 3],
        ),
        tie_word_embeddings=False,
    ),
}

STAGE_2 = "rollout_matching_sft"
# name: (model, samples of a micro-batch, micro-batches of a step, changes by key)
CASES = {
    "full": ("m60", 4, 1, {}),
    "full, checkpointing": ("m60", 8, 2, {"training.gradient_checkpointing": "true"}),
    "full, bfloat16": ("m100", 3, 1, {"model.torch_dtype": "bfloat16"}),
    "LoRA": ("m100", 4, 1, {"tuner.train_type": "lora"}),
    "native rollouts, packed": (
        "m60",
        3,
        2,
        {
            "custom.trainer_variant": STAGE_2,
            "custom.extra.rollout_matching.rollout_backend": "native",
            "training.packing": "true",
            "global_max_length": "1400",
        },
    ),
    "hf rollouts, DoRA, frozen tower": (
        "m27",
        4,
        2,
        {
            "custom.trainer_variant": STAGE_2,
            "custom.extra.rollout_matching.rollout_backend": "hf",
            "custom.extra.rollout_matching.rollout_generate_batch_size": "8",
            "tuner.train_type": "lora",
            "tuner.use_dora": "true",
            "tuner.freeze_vit": "true",
            "tuner.freeze_aligner": "true",
        },
    ),
}


# Sizes of the public checkpoints: hidden, intermediate, layers, heads; the tower's depth, hidden,
# intermediate, taps; tied head.
PUBLIC = {
    "2B": (2048, 6144, 28, 16, 24, 1024, 4096, [5, 11, 17], True),
    "4B": (2560, 9728, 36, 32, 24, 1024, 4096, [5, 11, 17], True),
    "8B": (4096, 12288, 36, 32, 27, 1152, 4304, [8, 16, 24], False),
    "32B": (5120, 25600, 64, 64, 27, 1152, 4304, [8, 16, 24], False),
}
WAYS = [
    ("full", 1, 0, "full"),
    ("full, 4 GPUs, zero 2", 4, 2, "full"),
    ("full, 8 GPUs, zero 2", 8, 2, "full"),
    ("LoRA, rank 8", 1, 0, "lora"),
    ("LoRA, rank 8, 4 bits", 1, 0, "lora"),
]


def public_config(name):
    hidden, inner, layers, heads, depth, width, vision_inner, taps, tied = PUBLIC[name]
    return {
        "model_type": "qwen3_vl",
        "dtype": "bfloat16",
        "tie_word_embeddings": tied,
        "text_config": {
            "vocab_size": 151936,
            "hidden_size": hidden,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": 8,
            "head_dim": 128,
        },
        "vision_config": {
            "depth": depth,
            "hidden_size": width,
            "intermediate_size": vision_inner,
            "num_heads": 16,
            "out_hidden_size": hidden,
            "deepstack_visual_indexes": taps,
        },
    }


def print_table(binary):
    """The longest sample of each model on each GPU, with gradient checkpointing; where none of 1024
    tokens fits, what that would take.
    """
    print(
        "| model | training | weights to gradients | 24 GB | 80 GB | 141 GB |\n"
        "|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as directory:
        for name in PUBLIC:
            (pathlib.Path(directory) / "config.json").write_text(json.dumps(public_config(name)))
            config = pathlib.Path(directory) / "run.yaml"
            config.write_text(
                f"model: {{model: {directory}}}\ncustom: {{train_jsonl: x, trainer_variant: "
                f"{STAGE_2}, "
                "extra: {rollout_matching: {rollout_backend: native}}}\n"
                "training: {output_dir: out, run_name: run, gradient_checkpointing: true, "
                "gradient_accumulation_steps: 16}\n"
            )
            for way, ranks, stage, train_type in WAYS:
                cells = []
                for gib in (24, 80, 141):
                    plan = json.loads(
                        subprocess.run(
                            [
                                binary,
                                "plan",
                                str(config),
                                f"--set=tuner.train_type={train_type}",
                                f"--set=model.load_in_4bit={str('4 bits' in way).lower()}",
                                "--json",
                                f"--gpu-memory={gib}",
                                f"--ranks={ranks}",
                                f"--set=training.zero_stage={stage}",
                                "--set=global_max_length=1024",
                            ],
                            check=True,
                            capture_output=True,
                            text=True,
                        ).stdout
                    )
                    update = next(
                        phase["bytes"] for phase in plan["phases"] if phase["name"] == "update"
                    )
                    state = sum(
                        update[key]
                        for key in ("weights", "masters", "moments", "gradients")
                        if key in update
                    )
                    cells.append(
                        f"{plan['largest_row_tokens']:,}".replace(",", " ")
                        if plan["fits"]
                        else f"– ({plan['peak_bytes'] / 2**30:.0f})"
                    )
                print(f"| {name} | {way} | {state / 2**30:.1f} GiB | {' | '.join(cells)} |")


def make_model(name, directory):
    config = configuration(**json.loads(json.dumps(MODELS[name])))
    torch.manual_seed(0)
    Qwen3VLForConditionalGeneration(config).to(torch.float32).save_pretrained(directory)
    for file in (ROOT / "tests/golden/model/tiny_tied").iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            shutil.copy(file, directory / file.name)


def make_data(directory, count=16):
    noise = numpy.random.default_rng(0)
    lines = []
    for i in range(count):
        Image.fromarray(noise.integers(0, 256, (SIDE, SIDE, 3), dtype=numpy.uint8)).save(
            directory / f"{i}.png"
        )
        boxes = [
            sorted(noise.choice(1000, 2, replace=False))
            + sorted(noise.choice(1000, 2, replace=False))
            for _ in range(5)
        ]
        objects = [
            {"desc": "cat", "bbox_2d": [int(b[0]), int(b[2]), int(b[1]), int(b[3])]} for b in boxes
        ]
        lines.append(
            json.dumps({"images": [f"{i}.png"], "width": SIDE, "height": SIDE, "objects": objects})
        )
    (directory / "train.jsonl").write_text("\n".join(lines) + "\n")


def make_config(directory, model_dir, case):
    model, batch, accumulation, changes = CASES[case]
    path = directory / "run.yaml"
    path.write_text(f"""global_max_length: 2048
model: {{model: {model_dir}, torch_dtype: float32}}
template: {{system: List the objects as JSON.}}
training: {{output_dir: {directory}/out, run_name: run, max_steps: 2,
  per_device_train_batch_size: {batch}, gradient_accumulation_steps: {accumulation},
  logging_steps: 1,
  report_to: none, save_strategy: "no", save_last_epoch: true}}
custom: {{train_jsonl: {directory}/train.jsonl, user_prompt: Find every cat.,
  extra: {{rollout_matching: {{rollout_backend: hf, max_new_tokens: 48}}}}}}
""")
    return path, [f"--set={key}={value}" for key, value in changes.items()]


def longest_sample(binary, config):
    """Tokens of the longest sample: packing the data stream measures them before the model is
    loaded.
    """
    result = subprocess.run(
        [
            binary,
            "train",
            str(config),
            "--set=training.packing=true",
            "--set=custom.trainer_variant=sft",
            "--set=training.max_steps=1",
            "--set=custom.train_sample_limit=2",
            "--set=training.save_last_epoch=false",
        ],
        capture_output=True,
        text=True,
    )
    found = re.search(r"on average, (\d+) at most", result.stdout + result.stderr)
    if not found:
        sys.exit(f"the samples cannot be measured:\n{result.stdout}{result.stderr}")
    return int(found.group(1))


def measured_peak(command):
    """Most resident bytes of the process, files included."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["nice", "-n", "10", *command],
            stdout=output,
            stderr=output,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            output.seek(0)
            sys.exit(output.read().decode())
    return usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--only", help="one case by name")
    parser.add_argument("--json")
    parser.add_argument(
        "--verbose", action="store_true", help="print the planned bytes of every phase"
    )
    parser.add_argument(
        "--table", action="store_true", help="print the table of public models instead"
    )
    arguments = parser.parse_args()
    if arguments.table:
        print_table(arguments.binary)
        return 0
    results = []
    print("| run | parameters | planned MiB | measured MiB | difference |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        make_data(scratch)
        models, sample_tokens = {}, None
        for case in CASES if not arguments.only else [arguments.only]:
            model = CASES[case][0]
            if model not in models:
                models[model] = scratch / model
                make_model(model, models[model])
            config, changes = make_config(scratch, models[model], case)
            sample_tokens = sample_tokens or longest_sample(arguments.binary, config)
            # With packing a row has as many tokens as it may have, made of samples.
            packed = "global_max_length" in CASES[case][3]
            row = (
                int(CASES[case][3]["global_max_length"]) // sample_tokens * sample_tokens
                if packed
                else sample_tokens
            )
            images = row // sample_tokens * (SIDE // 32) ** 2
            planned = json.loads(
                subprocess.run(
                    [
                        arguments.binary,
                        "plan",
                        str(config),
                        *changes,
                        "--json",
                        f"--set=global_max_length={row}",
                        f"--image-tokens={images}",
                    ],
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
            )
            peak = measured_peak(
                [arguments.binary, "train", str(config), "--device", "cpu", *changes]
            )
            shutil.rmtree(scratch / "out")
            difference = planned["peak_bytes"] / peak - 1
            results.append(
                {
                    "case": case,
                    "parameters": planned["parameters"],
                    "planned_bytes": planned["peak_bytes"],
                    "measured_bytes": peak,
                    "difference": difference,
                    "row_tokens": row,
                }
            )
            print(
                f"| {case} | {planned['parameters']['total'] / 1e6:.0f} M | "
                f"{planned['peak_bytes'] / 2**20:.0f} ({planned['peak_phase']}) "
                f"| {peak / 2**20:.0f} | {100 * difference:+.1f} % |",
                flush=True,
            )
            if arguments.verbose:
                for phase in planned["phases"]:
                    print(
                        "   ",
                        phase["name"],
                        {name: round(size / 2**20) for name, size in phase["bytes"].items()},
                        round(sum(phase["bytes"].values()) / 2**20),
                    )
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    worst = max(abs(result["difference"]) for result in results)
    print(f"\nlargest difference: {100 * worst:.1f} %")
    return 0 if worst <= 0.10 else 1


if __name__ == "__main__":
    sys.exit(main())
