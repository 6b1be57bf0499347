#!/usr/bin/env python3
"""Measures LoRA with fresh coord tokens on a tied model: tests/shapes/model loses its coord rows,
gets new ones and learns boxes again.

    .venv/bin/python dev/fresh_coords.py REMATCH OUT [--steps 300] [--num-train 800] [--num-val 96]
    [--compare 4]

OUT gets the scenes, the stock model, the base of `add-coord-tokens`, a run of stage 1 with
`trainable_token_indices: [coord_tokens]` and
the merged model; `rematch eval` measures base and merged (docs/adapters.md has the numbers). With
--compare the adapter is loaded by PEFT,
unmerged, and its greedy answers are compared with those of `rematch rollout` for the model merged
in float32 (needs transformers and peft).
Exit code 1 when F1 has not risen or an answer differs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent
EMBEDDING = "model.language_model.embed_tokens.weight"


def write_stock(out):
    """tests/shapes/model as it would be without coord tokens."""
    shutil.copytree(ROOT / "tests/shapes/model", out)
    tokenizer = json.loads((out / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["added_tokens"] = [
        token for token in tokenizer["added_tokens"] if not token["content"].startswith("<|coord_")
    ]
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    num_rows = max(token["id"] for token in tokenizer["added_tokens"]) + 1
    tensors = load_file(out / "model.safetensors")
    tensors[EMBEDDING] = tensors[EMBEDDING][:num_rows].clone()
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    config["text_config"]["vocab_size"] = num_rows
    (out / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")


def configuration(out, steps):
    path = out / "fresh.yaml"
    path.write_text(
        f"""extends: {ROOT}/tests/shapes/common.yaml
model: {{model: {out}/base}}
custom: {{trainer_variant: sft, train_jsonl: {out}/scenes/train.jsonl,
  val_jsonl: {out}/scenes/val.jsonl}}
tuner: {{train_type: lora, lora_rank: 16, lora_alpha: 32, lora_dropout: 0,
  target_modules: [all-linear], trainable_token_indices: [coord_tokens]}}
training: {{output_dir: {out}, run_name: run, max_steps: {steps}, learning_rate: 5.0e-3,
  eval_strategy: "no", save_steps: {steps}}}
""",
        encoding="utf-8",
    )
    return path


def compare(base, adapter, rollouts, count):
    """@return the number of samples whose answers by PEFT are those of the rollouts"""
    import torch
    from peft import PeftModel
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModelForImageTextToText

    model = PeftModel.from_pretrained(
        AutoModelForImageTextToText.from_pretrained(base, dtype=torch.float32), adapter
    ).eval()
    processor = AutoImageProcessor.from_pretrained(base)
    num_equal = 0
    for line in rollouts[:count]:
        ids = torch.tensor([line["prompt_token_ids"]])
        pixels = processor(
            images=[Image.open(line["images"][0]).convert("RGB")], return_tensors="pt"
        )
        answer = line["response_token_ids"]
        found = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            mm_token_type_ids=(ids == model.config.image_token_id).int(),
            **pixels,
            do_sample=False,
            max_new_tokens=len(answer),
        )
        num_equal += found[0, ids.shape[1] :].tolist() == answer
    return num_equal


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rematch", type=Path)
    parser.add_argument("out", type=Path)
    for name, value in (("steps", 300), ("num-train", 800), ("num-val", 96), ("compare", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True)
    os.environ["HF_HUB_OFFLINE"] = "1"

    def rematch(*arguments):
        subprocess.run([args.rematch.resolve(), *map(str, arguments)], cwd=ROOT, check=True)

    subprocess.run(
        [
            sys.executable,
            ROOT / "tests/shapes/make_scenes.py",
            out / "scenes",
            "--split",
            "hard",
            "--num-train",
            str(args.num_train),
            "--num-val",
            str(args.num_val),
        ],
        check=True,
    )
    write_stock(out / "stock")
    rematch("add-coord-tokens", out / "stock", out / "base")
    config = configuration(out, args.steps)

    def f1():
        return json.loads((out / "run/eval_results.json").read_text(encoding="utf-8"))[
            "eval_rollout_f1_iou50"
        ]

    full = ("--set", "tuner.train_type=full", "--set", "tuner.trainable_token_indices=[]")
    rematch("eval", config, *full)
    before = f1()
    rematch("train", config)
    adapter = out / f"run/checkpoint-{args.steps}"
    rematch("merge", adapter, "--model", out / "base", "--out", out / "merged")
    rematch("eval", config, *full, "--set", f"model.model={out}/merged")
    print(f"F1 @ IoU 0.5 from {before:.3f} to {f1():.3f}")
    good = f1() > before
    if args.compare:
        rematch(
            "merge",
            adapter,
            "--model",
            out / "base",
            "--out",
            out / "merged_float32",
            "--dtype",
            "float32",
        )
        rematch(
            "rollout",
            config,
            *full,
            "--set",
            f"model.model={out}/merged_float32",
            "--set",
            "model.torch_dtype=float32",
            "--out",
            out / "rollouts.jsonl",
        )
        rollouts = [
            json.loads(line)
            for line in (out / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        asked = min(args.compare, len(rollouts))
        num_equal = compare(out / "base", adapter, rollouts, asked)
        print(f"{num_equal} of {asked} answers by PEFT are those of the merged model")
        good = good and num_equal == asked
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
