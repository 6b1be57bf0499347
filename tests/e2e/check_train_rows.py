"""The rows of check_train_check.py: odd settings, checkpoints and records."""

import json
import os
import struct
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
STAGE_2_KEYS = "custom.extra.rollout_matching."
NATIVE = STAGE_2_KEYS + "rollout_backend=native"  # makes a row one of stage 2
RECORDS_FILE = f"{SCENES}/train.jsonl"
VALIDATE = [
    f"custom.val_jsonl={SCENES}/val.jsonl",
    "training.eval_strategy=steps",
    "training.eval_steps=1",
]
OWN = "custom.object_ordering=own"
REWRITE_OWN = [STAGE_2_KEYS + "target_policy=rewrite", STAGE_2_KEYS + "rewrite_order=own"]
SMALL_CACHE = STAGE_2_KEYS + "native.kv_cache_gib=3.0e-4"
MONITOR = STAGE_2_KEYS + "monitor_dump."


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


def edit_text(**values):
    """Changes the language model's part of config.json."""

    def edit(model):
        content = json.loads((model / "config.json").read_text())
        content["text_config"].update(values)
        (model / "config.json").write_text(json.dumps(content))

    return edit


def edit_header(change):
    """Changes the header of the weights; their bytes stay."""

    def edit(model):
        path = model / "model.safetensors"
        content = path.read_bytes()
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
        change(header)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])

    return edit


def set_dtype(dtype):
    return edit_header(
        lambda header: [
            tensor.update(dtype=dtype) for name, tensor in header.items() if name != "__metadata__"
        ]
    )


# Values that neither files nor headers show are not in these tables: NaN in weights, a full disk.
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
    [*FOUR_BIT, "tuner.use_dora=true"],
    [*FOUR_BIT, "tuner.freeze_vit=true", "tuner.target_modules=[q_proj]"],
    [*FOUR_BIT, "tuner.trainable_token_indices=[5]"],
    [*FOUR_BIT, "model.bnb_4bit_use_double_quant=true", "model.bnb_4bit_quant_type=fp4"],
    [*FOUR_BIT, NATIVE],
    [*FOUR_BIT, OWN],
    [LORA, "tuner.lora_rank=64", "tuner.use_dora=true", "tuner.lora_dropout=0.999"],
    [LORA, "tuner.freeze_vit=true", "tuner.target_modules=[qkv]"],
    [LORA, "tuner.freeze_aligner=true", "tuner.target_modules=[linear_fc1]"],
    [LORA, "tuner.target_regex=.*visual.*"],
    [LORA, "tuner.target_modules=[]"],
    [LORA, "tuner.target_modules=[q_proj]", "tuner.modules_to_save=[q_proj]"],
    [LORA, "tuner.modules_to_save=[visual]"],
    ["tuner.freeze_llm=true", "tuner.freeze_vit=true"],
    ["training.lr_scheduler_type=cosine_with_min_lr"],
    ["training.warmup_ratio=1", "training.warmup_steps=3"],
    ["training.num_train_epochs=0.001", "training.max_steps=-1"],
    ["training.effective_batch_size=4", "training.gradient_accumulation_steps=2"],
    [
        "training.dataloader_drop_last=true",
        "training.per_device_train_batch_size=9",
        "training.max_steps=-1",
    ],
    ["deepspeed=zero3"],
    ["training.deepspeed=gone.json"],
    ["template.min_pixels=4096", "template.max_pixels=1024"],
    ["template.max_pixels=100000000"],
    ["template.image_resize=refuse", "data.augment.crop=0.1"],
    ["template.image_resize=refuse", "data.augment.rot90=1"],
    ["template.truncation_strategy=delete", "global_max_length=101"],
    ["template.system=<|image_pad|>"],
    ["template.template=qwen2_5_vl"],
    ["custom.user_prompt=<image>"],
    ["custom.user_prompt=model/config.json"],
    [f"custom.train_jsonl=[{{path: {RECORDS_FILE}, weight: 0.1}}]", "training.max_steps=-1"],
    [f"custom.train_jsonl=[{RECORDS_FILE}, gone.jsonl]"],
    ["data.augment.hflip=1", "custom.user_prompt=find the left one"],
    ["data.augment.rot90=1", "global_max_length=101"],
    ["custom.absent_classes.share=0.5"],
    ["custom.answer_format=qwen_boxes"],
    [*VALIDATE],
    [*VALIDATE, "global_max_length=90"],
    [*VALIDATE, "training.per_device_eval_batch_size=100000"],
    [*VALIDATE, f"custom.val_jsonl={RECORDS_FILE}"],
    ["training.save_delay_steps=9"],
    ["training.resume_from_checkpoint=model"],
    ["training.resume_from_checkpoint=true"],
    ["training.packing=true", "global_max_length=null"],
    ["training.packing=true", "training.packing_min_fill_ratio=1", "training.max_steps=-1"],
    ["training.packing=true", STAGE_2_KEYS + "post_rollout_pack_scope=window"],
    ["training.packing=true", "training.packing_drop_last=false", NATIVE],
    [NATIVE, "model.torch_dtype=bfloat16"],
    [STAGE_2_KEYS + "label_match=model/config.json"],
    [STAGE_2_KEYS + "rollout_buffer.enabled=true", STAGE_2_KEYS + "rollout_buffer.m_steps=3"],
    [OWN, "training.packing=true"],
    [OWN, STAGE_2_KEYS + "temperature=1"],
    [OWN, *REWRITE_OWN],
    REWRITE_OWN,
]
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
    "generation_config is a directory": lambda model: (
        (model / GENERATION).unlink(),
        (model / GENERATION).mkdir(),
    ),
    "eos is nested": edit_json(GENERATION, eos_token_id=[[362]]),
    "eos is an image": edit_json(GENERATION, eos_token_id=366),
    "generation_config with a temperature that is a text": edit_json(GENERATION, temperature="x"),
    "an image mean of two numbers": edit_json(PROCESSOR, image_mean=[0.5, 0.5]),
    "no size of images": edit_json(PROCESSOR, size={}),
    "small images": edit_json(
        PROCESSOR, do_resize=True, size={"shortest_edge": 1024, "longest_edge": 1024}
    ),
    "a token beyond the vocabulary": lambda model: edit_tokens(
        model, lambda tokens: tokens.append({**tokens[0], "id": 1368, "content": "<extra>"})
    ),
    "no added tokens": lambda model: edit_tokens(model, lambda tokens: tokens.clear()),
    "template that refuses": write("chat_template.jinja", "{{ raise_exception('no') }}"),
    "a layer more": edit_text(num_hidden_layers=4),
    "a layer less": edit_text(num_hidden_layers=2),
    "three heads": edit_text(num_attention_heads=3),
    "ten positions": edit_text(max_position_embeddings=10),
    "an untied head that is missing": edit_json("config.json", tie_word_embeddings=False),
    "an unknown dtype in the config": edit_json("config.json", dtype="int8"),
    "weights in float16": set_dtype("F16"),
    "weights in int16": set_dtype("I16"),
    "an empty tensor more": edit_header(
        lambda header: header.update(
            {"more": {"dtype": "BF16", "shape": [0], "data_offsets": [0, 0]}}
        )
    ),
    "an index beside the weights": write("model.safetensors.index.json", "{"),
    "an adapter's config beside the weights": write("adapter_config.json", "{}"),
    "a prompt of another answer format": write("rematch_prompt.json", '{"answer_format": "xml"}'),
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
    "two images": json.dumps({**json.loads(RECORD), "images": ["images/0.png", "images/1.png"]}),
    "an image that is a text": json.dumps({**json.loads(RECORD), "images": ["run.yaml"]}),
    "a prompt without text": json.dumps({**json.loads(RECORD), "prompt": ""}),
    "a width that is a text": json.dumps({**json.loads(RECORD), "width": "64"}),
    "a byte order mark": "\ufeff" + RECORD,
    "a key twice": RECORD[:-1] + ', "width": 64}',
    "two records in a line": RECORD + RECORD,
    "900 objects": json.dumps(
        {**json.loads(RECORD), "objects": json.loads(RECORD)["objects"] * 300}
    ),
}
# On these check and train have disagreed: (name, stage, settings, edit of the model).
FOUND = [
    (
        "the order of the answers needs vLLM in stage 1",
        SFT,
        [OWN, STAGE_2_KEYS + "rollout_backend=vllm"],
        None,
    ),
    ("the stored order is damaged", SFT, [OWN], write("rematch_order.json", "{")),
    (
        "shards cannot answer for their order",
        SFT,
        [OWN, "custom.extra.rollout_matching=null", LORA, "training.zero_stage=3"],
        None,
    ),
    ("the cache is too small for an answer", STAGE_2, [SMALL_CACHE], None),
    ("the order of the answers needs a larger cache", SFT, [OWN, SMALL_CACHE], None),
    ("no engine needs the small cache", SFT, [SMALL_CACHE], None),
    (
        "an evaluation needs a larger cache",
        SFT,
        [*VALIDATE, "training.eval_steps=1", SMALL_CACHE],
        None,
    ),
    (
        "TensorBoard's directory cannot be made",
        SFT,
        ["training.report_to=tensorboard", "training.logging_dir=/proc/x"],
        None,
    ),
    (
        "the monitor's directory is a file",
        STAGE_2,
        [MONITOR + "enabled=true", MONITOR + "out_dir=model/config.json"],
        None,
    ),
]


def cases():
    """(name, stage, settings, edit of the model, text of the records or None) of each row of the
    tables, but those of FOUND.
    """
    for settings in SETTINGS:
        stage_2 = any("rollout_matching" in one for one in settings)
        yield " ".join(settings) or "as it is", STAGE_2 if stage_2 else SFT, settings, None, None
    for name, edit in CHECKPOINTS.items():
        yield name, STAGE_2 if "eos" in name or "generation" in name else SFT, [], edit, None
    for name, text in RECORDS.items():
        yield name, SFT, [], None, text + "\n"
