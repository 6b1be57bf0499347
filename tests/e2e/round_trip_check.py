#!/usr/bin/env python3
"""A stock checkpoint of either family, as save_pretrained writes it, through every command;
transformers and PEFT read what comes out.

usage: round_trip_check.py REMATCH

Stock: a tiny model with random weights, a tokenizer built from vocabulary and merges without coord
tokens, the family's processor, a chat
template with the statements of the published ones. Then add-coord-tokens, check, stage 1, stage 2,
a resumed step, eval, rollout; LoRA and
merge. The results are loaded with AutoProcessor, the model's class and PEFT: prompts and greedy
answers are those of `rematch rollout`.
Skipped without transformers or torchvision (scripts/setup --oracles, scripts/setup-vllm).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "dev/goldens"))
os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
MAX_NEW_TOKENS = 20
PROMPT = {"system": "Name what you see.", "user": "Where are the shapes?"}
BETWEEN = "<|vision_start|><|image_pad|><|vision_end|>"

QWEN3_TEMPLATE = """{%- macro shown(content, counts) -%}
{%- if content is string -%}{{- content -}}{%- else -%}
{%- for part in content -%}
{%- if part.type == 'image' or 'image' in part or 'image_url' in part -%}
{%- set counts.images = counts.images + 1 -%}
{%- if add_vision_id is defined and add_vision_id -%}Picture {{ counts.images }}: {% endif -%}
BETWEEN
{%- elif 'text' in part -%}{{- part.text -}}{%- endif -%}
{%- endfor -%}{%- endif -%}
{%- endmacro -%}
{%- set counts = namespace(images=0) -%}
{%- if tools -%}{{- raise_exception('no tools') -}}{%- endif -%}
{%- for message in messages -%}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ shown(message.content, counts) ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
""".replace("BETWEEN", BETWEEN)
QWEN25_TEMPLATE = """{% set pictures = namespace(value=0) %}{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system
Be helpful.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}<|im_end|>
{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or 'image_url' in content %}{% set pictures.value = pictures.value + 1 %}{% if add_vision_id %}Picture {{ pictures.value }}: {% endif %}BETWEEN{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}""".replace("BETWEEN", BETWEEN)


def write_stock(directory, family):
    """The directory of a published model, small: everything by save_pretrained."""
    import model_qwen2_5vl
    import model_tiny
    from tokenizers import Tokenizer
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen3VLProcessor
    from transformers.models.qwen2 import Qwen2Tokenizer
    from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    words = json.loads(Tokenizer.from_file(str(model_tiny.TOKENIZER)).to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=words["vocab"], merges=[tuple(m) for m in words["merges"]], eos_token="<|im_end|>"
    )
    tokenizer.add_tokens(
        [
            "<|im_start|>",
            "<|im_end|>",
            "<|vision_start|>",
            "<|vision_end|>",
            "<|vision_pad|>",
            "<|image_pad|>",
            "<|video_pad|>",
        ],
        special_tokens=True,
    )
    ids = {
        name: tokenizer.convert_tokens_to_ids(f"<|{name}|>")
        for name in ("endoftext", "im_end", "vision_start", "vision_end", "image_pad", "video_pad")
    }
    limits = {"shortest_edge": 2048, "longest_edge": 8192}
    places = dict(
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
    )
    text = dict(
        vocab_size=len(tokenizer) + 9, bos_token_id=ids["endoftext"], eos_token_id=ids["im_end"]
    )
    if family == "qwen3":
        processor = Qwen3VLProcessor(
            Qwen2VLImageProcessor(
                patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3, size=limits
            ),
            tokenizer,
            Qwen3VLVideoProcessor(),
            chat_template=QWEN3_TEMPLATE,
        )
        config = model_tiny.configuration(
            text=text | dict(pad_token_id=ids["endoftext"]), tie_word_embeddings=True, **places
        )
    else:
        processor = Qwen2_5_VLProcessor(
            Qwen2VLImageProcessor(size=limits),
            tokenizer,
            Qwen2VLVideoProcessor(),
            chat_template=QWEN25_TEMPLATE,
        )
        config = model_qwen2_5vl.configuration(
            text=text,
            vision=dict(patch_size=14, window_size=56),
            tie_word_embeddings=False,
            **places,
        )
    model = model_tiny.build(config, 11, model_tiny.torch.float32)
    model.generation_config.update(
        bos_token_id=ids["endoftext"],
        eos_token_id=[ids["im_end"], ids["endoftext"]],
        pad_token_id=ids["endoftext"],
    )
    model.save_pretrained(directory)
    processor.save_pretrained(directory)


def write_scenes(here):
    import numpy as np
    from PIL import Image
    from vision_images import scene

    rng = np.random.default_rng(5)
    for split, sizes in (
        ("train", [(61, 90), (120, 47), (64, 64), (33, 100)]),
        ("val", [(75, 101), (130, 66)]),
    ):
        with open(here / f"{split}.jsonl", "w", encoding="utf-8") as file:
            for i, (height, width) in enumerate(sizes):
                name = f"{split}{i}.png"
                Image.fromarray(scene(rng, height, width)).save(here / name)
                objects = [
                    {"desc": "a box", "bbox_2d": [100 + i, 200, 700, 900]},
                    {"desc": "edge", "poly": [0, 0, 900, 10, 500, 800]},
                ]
                file.write(
                    json.dumps(
                        {"images": [name], "width": width, "height": height, "objects": objects}
                    )
                    + "\n"
                )


class Runs:
    """Runs of the program in one directory."""

    def __init__(self, rematch, here):
        self.rematch, self.here = rematch, here

    def run(self, *arguments):
        done = subprocess.run(
            [self.rematch, *map(str, arguments)], cwd=self.here, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"

    def config(self, name, model, variant="rollout_matching_sft", more=""):
        text = f"""global_max_length: 1024
model: {{model: {model}, torch_dtype: float32}}
training: {{output_dir: out, run_name: {name}, max_steps: 1,
  per_device_train_batch_size: 2, learning_rate: 5.0e-3,
  eval_strategy: "no", report_to: none, gradient_accumulation_steps: 2}}
custom: {{trainer_variant: {variant}, train_jsonl: train.jsonl, val_jsonl: val.jsonl,
  user_prompt: "{PROMPT['user']}",
  extra: {{rollout_matching: {{rollout_backend: native, max_new_tokens: {MAX_NEW_TOKENS}}}}}}}
template: {{system: "{PROMPT['system']}"}}
{more}"""
        (self.here / f"{name}.yaml").write_text(text, encoding="utf-8")
        return f"{name}.yaml"

    def answers(self, model):
        """(image, prompt ids, answer ids) of each validation sample, by `rematch rollout`."""
        self.run("rollout", self.config("ask", model), "--out", "asked.jsonl")
        lines = [
            json.loads(line)
            for line in (self.here / "asked.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        return [
            (self.here / line["images"][0], line["prompt_token_ids"], line["response_token_ids"])
            for line in lines
        ]


def check_answers(model, processor, expected, what):
    """Prompt and greedy answer by transformers are those of `rematch rollout`."""
    import torch
    from PIL import Image

    stops = model.generation_config.eos_token_id
    for path, prompt, answer in expected:
        messages = [
            {"role": "system", "content": [{"type": "text", "text": PROMPT["system"]}]},
            {
                "role": "user",
                "content": [{"type": "image"}, {"type": "text", "text": PROMPT["user"]}],
            },
        ]
        text = processor.apply_chat_template(messages, add_generation_prompt=True)
        inputs = processor(
            text=[text], images=[Image.open(path).convert("RGB")], return_tensors="pt"
        )
        assert inputs["input_ids"][0].tolist() == prompt, f"{what}: another prompt for {path}"
        with torch.no_grad():
            ids = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_NEW_TOKENS)[
                0, len(prompt) :
            ].tolist()
        end = next((i for i, token in enumerate(ids) if token in stops), len(ids))
        given = next((i for i, token in enumerate(answer) if token in stops), len(answer))
        assert ids[:end] == answer[:given], (
            f"{what}: {path}\n  transformers {ids}\n  rematch      {answer}"
        )


def load(directory):
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    model, info = AutoModelForImageTextToText.from_pretrained(
        directory, dtype=torch.float32, output_loading_info=True
    )
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), (
        info
    )
    return model.eval(), AutoProcessor.from_pretrained(directory)


def check_family(rematch, here, family):
    from peft import PeftModel

    write_stock(here / "stock", family)
    write_scenes(here)
    runs = Runs(rematch, here)
    runs.run("add-coord-tokens", "stock", "base")
    stage_1 = runs.config("one", "base", "sft")
    runs.run("check", stage_1)
    runs.run("train", stage_1)
    runs.run("train", runs.config("two", "out/one/checkpoint-1"))
    runs.run(
        "train",
        "two.yaml",
        "--set",
        "training.max_steps=2",
        "--set",
        "training.resume_from_checkpoint=latest",
    )
    runs.run("eval", runs.config("score", "out/two/checkpoint-2"))
    check_answers(
        *load(here / "out/two/checkpoint-2"),
        runs.answers("out/two/checkpoint-2"),
        f"{family}: two stages",
    )

    adapter = (
        "tuner: {train_type: lora, lora_rank: 4, target_modules: [all-linear], "
        "trainable_token_indices: [coord_tokens]}\n"
    )
    runs.run("train", runs.config("lora", "base", "sft", adapter))
    runs.run("merge", "out/lora/checkpoint-1", "--model", "base", "--out", "merged")
    merged = runs.answers("merged")
    check_answers(*load(here / "merged"), merged, f"{family}: merged")
    model, processor = load(here / "base")
    check_answers(
        PeftModel.from_pretrained(model, here / "out/lora/checkpoint-1").eval(),
        processor,
        merged,
        f"{family}: adapter",
    )


def main():
    from find_torchvision import find_torchvision

    if not find_torchvision():  # before transformers looks for it
        print("AutoProcessor needs torchvision (run scripts/setup-vllm)")
        return 77
    try:
        import peft  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"{error} (run scripts/setup --oracles)")
        return 77
    for family in ("qwen3", "qwen25"):
        with tempfile.TemporaryDirectory() as name:
            check_family(Path(sys.argv[1]).resolve(), Path(name), family)
        print(f"{family}: prompts and answers are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
