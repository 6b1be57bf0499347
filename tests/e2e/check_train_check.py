#!/usr/bin/env python3
"""`check` accepts what `train` accepts: both run on a table of odd settings, checkpoints and
records, and must agree. One step each, on the tiny golden model.

usage: check_train_check.py REMATCH [--every N]

--every N: each N-th row of the table only (CI); without it all of them.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/golden/model/tiny_tied"
SCENES = ROOT / "tests/golden/e2e"
CONFIG = """\
global_max_length: 1024
model: {{model: model, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: 1, per_device_train_batch_size: 2,
  gradient_accumulation_steps: 1, learning_rate: 1.0e-3, eval_strategy: "no", report_to: none}}
custom:
  trainer_variant: {variant}
  train_jsonl: {scenes}/train.jsonl
  extra: {{rollout_matching: {{rollout_backend: native, max_new_tokens: 8}}}}
"""
SFT, STAGE_2 = "sft", "rollout_matching_sft"
LORA = "tuner.train_type=lora"
FOUR_BIT = [LORA, "model.load_in_4bit=true"]
# Values that neither files nor headers show are not in this table: NaN in weights, a full disk.
SETTINGS = [
    [],
    ["training.max_steps=0"],
    ["training.max_steps=-1"],
    ["training.num_train_epochs=0"],
    ["training.learning_rate=0"],
    ["training.learning_rate=-1"],
    ["training.learning_rate=nan"],
    ["training.warmup_ratio=1.5"],
    ["training.warmup_steps=9"],
    ["training.per_device_train_batch_size=0"],
    ["training.per_device_train_batch_size=1000"],
    ["training.gradient_accumulation_steps=0"],
    ["training.lr_scheduler_type=square"],
    ["training.weight_decay=-1"],
    ["training.max_grad_norm=0"],
    ["training.save_steps=0"],
    ["training.save_total_limit=0"],
    ["training.save_strategy=epoch"],
    ["training.eval_strategy=steps"],
    ["training.load_best_model_at_end=true"],
    ["training.metric_for_best_model=nothing"],
    ["training.run_name=a/b"],
    ["training.run_name=.."],
    ["training.output_dir=/proc/x"],
    ["training.output_dir=model/config.json"],
    ["training.report_to=[none, tensorboard]"],
    ["training.resume_from_checkpoint=nowhere"],
    ["training.resume_from_checkpoint=latest"],
    ["training.gradient_checkpointing=selective"],
    ["training.gradient_checkpointing=maybe"],
    ["training.packing=true"],
    ["training.seed=-1"],
    ["training.ddp_timeout=0"],
    ["training.use_liger_kernel=true"],
    ["training.fp16=true"],
    ["training.deepspeed=zero2"],
    ["global_max_length=1"],
    ["global_max_length=60"],
    ["global_max_length=0"],
    ["model.model=gone"],
    ["model.model=model/config.json"],
    ["model.torch_dtype=float16"],
    ["model.torch_dtype=bfloat16"],
    ["model.load_in_4bit=true"],
    ["model.load_in_8bit=true"],
    ["template.max_pixels=1"],
    ["template.max_pixels=1024x1024"],
    ["template.system="],
    ["template.system=[]"],
    ["custom.train_jsonl=gone.jsonl"],
    ["custom.train_jsonl=model"],
    ["custom.val_jsonl=gone.jsonl"],
    ["custom.answer_format=qwen_json"],
    ["custom.answer_format=none"],
    ["custom.object_ordering=random"],
    ["custom.object_ordering=upwards"],
    ["custom.user_prompt="],
    ["custom.extra.rollout_matching.max_new_tokens=0"],
    ["custom.extra.rollout_matching.rollout_backend=vllm"],
    ["custom.extra.rollout_matching.rollout_backend=hg"],
    ["custom.extra.rollout_matching.temperature=-1"],
    ["custom.extra.rollout_matching.candidate_top_k=0"],
    ["custom.extra.rollout_matching.target_policy=nothing"],
    ["custom.extra.rollout_matching.rollout_buffer.m_steps=0"],
    ["custom.nothing=1"],
    [LORA],
    [LORA, "tuner.lora_rank=0"],
    [LORA, "tuner.lora_rank=100000"],
    [LORA, "tuner.lora_alpha=-1"],
    [LORA, "tuner.lora_dropout=1"],
    [LORA, "tuner.use_dora=true"],
    [LORA, "tuner.target_modules=[nothing]"],
    [LORA, "tuner.target_regex=("],
    [LORA, "tuner.modules_to_save=[nothing]"],
    [LORA, "tuner.modules_to_save=[lm_head]"],
    [LORA, "tuner.modules_to_save=[embed_tokens]"],
    [LORA, "tuner.trainable_token_indices=[nothing]"],
    [LORA, "tuner.trainable_token_indices=[1, 99999]"],
    [LORA, "tuner.freeze_llm=true"],
    ["tuner.freeze_llm=true", "tuner.freeze_vit=true", "tuner.freeze_aligner=true"],
    ["tuner.train_type=prompt"],
    FOUR_BIT,
    [*FOUR_BIT, "model.bnb_4bit_quant_type=fp5"],
    [*FOUR_BIT, "model.llm_int8_skip_modules=[visuals]"],
    [*FOUR_BIT, "model.llm_int8_skip_modules=[q_proj.weight]"],
    [*FOUR_BIT, "model.llm_int8_skip_modules=[visual]"],
    [*FOUR_BIT, "tuner.modules_to_save=[down_proj]"],
    [*FOUR_BIT, "tuner.modules_to_save=[merger.linear_fc1]"],
    [*FOUR_BIT, "tuner.modules_to_save=[embed_tokens]"],
]


def edit_json(name, **values):
    def edit(model):
        path = model / name
        content = json.loads(path.read_text())
        content.update(values)
        path.write_text(json.dumps(content))

    return edit


def edit_tokens(model, edit):
    path = model / "tokenizer.json"
    content = json.loads(path.read_text())
    edit(content["added_tokens"])
    path.write_text(json.dumps(content))


def write(name, text):
    return lambda model: (model / name).write_text(text)


def remove(name):
    return lambda model: (model / name).unlink()


def truncate(name, num_bytes):
    return lambda model: os.truncate(model / name, num_bytes)


GENERATION, PROCESSOR = "generation_config.json", "preprocessor_config.json"
CHECKPOINTS = {
    "no generation_config": remove(GENERATION),
    "generation_config is no JSON": write(GENERATION, "{"),
    "generation_config is a list": write(GENERATION, "[]"),
    "eos is negative": edit_json(GENERATION, eos_token_id=-1),
    "eos is a text": edit_json(GENERATION, eos_token_id="x"),
    "eos is a fraction": edit_json(GENERATION, eos_token_id=3.0),
    "eos is an empty list": edit_json(GENERATION, eos_token_id=[]),
    "eos is null": edit_json(GENERATION, eos_token_id=None),
    "eos is beyond the vocabulary": edit_json(GENERATION, eos_token_id=99999999),
    "generation_config is UTF-16": lambda model: (model / GENERATION).write_bytes(b"\xff\xfe{\0"),
    "output_dir is a link that leads nowhere": lambda model: (model.parent / "out").symlink_to("x"),
    "output_dir is a link": lambda model: (
        (model.parent / "x").mkdir(),
        (model.parent / "out").symlink_to("x"),
    ),
    "a file has the run's name": lambda model: (
        (model.parent / "out").mkdir(),
        (model.parent / "out/run").write_text(""),
    ),
    "weights are a link that leads nowhere": lambda model: (
        (model / "model.safetensors").unlink(),
        (model / "model.safetensors").symlink_to("x"),
    ),
    "a token less": lambda model: edit_tokens(model, lambda tokens: tokens.pop()),
    "two tokens of one id": lambda model: edit_tokens(
        model, lambda tokens: tokens.append(tokens[0])
    ),
    "a prompt that is no JSON": write("rematch_prompt.json", "{"),
    "no config": remove("config.json"),
    "config is no JSON": write("config.json", "{,"),
    "another family": edit_json("config.json", model_type="llava"),
    "quantised by another program": edit_json("config.json", quantization_config={"bits": 4}),
    "another image token": edit_json("config.json", image_token_id=3),
    "no weights": remove("model.safetensors"),
    "truncated weights": truncate("model.safetensors", 5000),
    "empty weights": write("model.safetensors", ""),
    "no tokenizer": remove("tokenizer.json"),
    "tokenizer is no JSON": write("tokenizer.json", "version https://git-lfs.github.com/spec/v1"),
    "no template": remove("chat_template.jinja"),
    "template with an error": write("chat_template.jinja", "{% if %}"),
    "template without images": write("chat_template.jinja", "hello"),
    "no processor": remove(PROCESSOR),
    "another patch size": edit_json(PROCESSOR, patch_size=14),
    "processor is no JSON": write(PROCESSOR, "]"),
    "no tokenizer_config": remove("tokenizer_config.json"),
}
RECORD = (SCENES / "train.jsonl").read_text().splitlines()[0]
RECORDS = {
    "no record": "",
    "no JSON": "{",
    "a list": "[]",
    "no images": json.dumps({**json.loads(RECORD), "images": []}),
    "a missing image": json.dumps({**json.loads(RECORD), "images": ["gone.png"]}),
    "no objects": json.dumps({**json.loads(RECORD), "objects": []}),
    "a width of 0": json.dumps({**json.loads(RECORD), "width": 0}),
    "another height": json.dumps({**json.loads(RECORD), "height": 9999}),
    "objects are no list": json.dumps({**json.loads(RECORD), "objects": 3}),
}


def cases():
    """(name, stage, settings, edit of the model, text of the records or None) of each row."""
    for settings in SETTINGS:
        stage_2 = any("rollout_matching" in one for one in settings)
        for variant in [STAGE_2] if stage_2 else [SFT]:
            yield " ".join(settings) or "as it is", variant, settings, None, None
    for name, edit in CHECKPOINTS.items():
        yield name, STAGE_2 if "eos" in name or "generation" in name else SFT, [], edit, None
    for name, text in RECORDS.items():
        yield name, SFT, [], None, text + "\n"


def outcome(rematch, case):
    """Exit codes of check and train, and the first line of the one that refused."""
    _, variant, settings, edit, records = case
    with tempfile.TemporaryDirectory(prefix="check_train_") as directory:
        place = Path(directory)
        shutil.copytree(MODEL, place / "model", copy_function=shutil.copyfile)
        if edit:
            edit(place / "model")
        config = CONFIG.format(variant=variant, scenes=SCENES)
        if records is not None:
            (place / "records.jsonl").write_text(records)
            (place / "images").symlink_to(SCENES / "images")
            config = config.replace(f"{SCENES}/train.jsonl", "records.jsonl")
        (place / "run.yaml").write_text(config)
        arguments = ["run.yaml", *(part for one in settings for part in ("--set", one))]
        codes, first = [], ""
        for command in ("check", "train"):
            done = subprocess.run(
                [rematch, command, *arguments],
                cwd=place,
                capture_output=True,
                text=True,
                errors="replace",
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                timeout=280,
            )
            codes.append(done.returncode)
            said = [one for one in done.stderr.splitlines() if one.startswith("error:")]
            first = first or (said[0] if said else "")
    return codes, first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rematch")
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    rows = list(cases())[:: arguments.every]
    rematch = os.path.abspath(arguments.rematch)
    num_accepted, failed = 0, []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (codes, first) in zip(rows, pool.map(lambda one: outcome(rematch, one), rows)):
            check, train = codes
            num_accepted += train == 0
            if (check == 0) != (train == 0) or max(codes) > 4 or min(codes) < 0:
                failed.append(f"{case[0]}: check {check}, train {train}: {first}")
    print(f"{len(rows)} rows: train accepts {num_accepted}, check disagrees on {len(failed)}")
    print("\n".join(failed))
    return 1 if failed or not 0 < num_accepted < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
