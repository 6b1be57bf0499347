"""Random tiny Qwen3-VL checkpoints with transformers' logits and gradients for them.

model_tiny.py golden            rewrites tests/golden/model/tiny_tied and tiny_untied
model_tiny.py live OUT [SEED]   writes five checkpoints and their answers below OUT (for the live
test)

Each checkpoint directory DIR gets a sibling DIR.answers.safetensors:
  CASE.token_ids, CASE.grid_thw [images, 3]   (image pads already expanded)
  CASE.logits [T, V/stride]                   float32, every stride-th column (8 in the stored ones
  to keep them small)
  grad.NAME                                   gradients of the mean next-token cross-entropy of the
  last case, by parameter name
Pixels are not stored: row i, column k is (((i·7919 + k·104729 + (i·k) % 251) % 256) − 127.5) /
127.5.
"""

import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForImageTextToText, Qwen3VLConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "tests/golden/tokenizer/tokenizer.json"
IDS = {
    "endoftext": 360,
    "im_start": 361,
    "im_end": 362,
    "vision_start": 363,
    "vision_end": 364,
    "image_pad": 366,
    "video_pad": 367,
}

CHAT_TEMPLATE = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- else %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def changed_configuration(config_class, text, vision, changes):
    """@param changes  of "text", of "vision", and of the keys above them"""
    ids = dict(
        image_token_id=IDS["image_pad"],
        video_token_id=IDS["video_pad"],
        vision_start_token_id=IDS["vision_start"],
        vision_end_token_id=IDS["vision_end"],
    )
    changes = dict(changes)
    text = {**text, **changes.pop("text", {})}
    vision = {**vision, **changes.pop("vision", {})}
    return config_class(text_config=text, vision_config=vision, **{**ids, **changes})


def configuration(**changes):
    text = dict(
        vocab_size=1368,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        rms_norm_eps=1e-6,
        pad_token_id=IDS["endoftext"],
        bos_token_id=IDS["endoftext"],
        eos_token_id=IDS["im_end"],
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 5000000.0,
            "mrope_section": [4, 2, 2],
            "mrope_interleaved": True,
        },
    )
    vision = dict(
        depth=3,
        hidden_size=24,
        intermediate_size=40,
        num_heads=2,
        patch_size=16,
        spatial_merge_size=2,
        temporal_patch_size=2,
        num_position_embeddings=36,
        out_hidden_size=32,
        deepstack_visual_indexes=[0, 2],
    )
    return changed_configuration(Qwen3VLConfig, text, vision, changes)


def build(config, seed, dtype):
    """A model whose every parameter matters: transformers' own initialisation (0.02, ones, zeros)
    would hide mistakes.
    """
    torch.manual_seed(seed)
    model = AutoModelForImageTextToText.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if (
                name.endswith(("norm.weight", "ln_q.weight"))
                or ".norm1.weight" in name
                or ".norm2.weight" in name
                or "layernorm.weight" in name
            ):
                parameter.copy_(1 + 0.2 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(0.1 * torch.randn_like(parameter))
            elif "embed" in name and parameter.dim() == 2:
                parameter.copy_(0.5 * torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter) / parameter[0].numel() ** 0.5)
    return model.to(dtype).eval()


def pixels(num_rows, width):
    i = torch.arange(num_rows)[:, None]
    k = torch.arange(width)[None, :]
    return (((i * 7919 + k * 104729 + (i * k) % 251) % 256).float() - 127.5) / 127.5


def cases(config):
    """(name, token ids, grids): text only; one image; two images of two sizes."""
    top = config.text_config.vocab_size
    words = lambda start, count: [
        5 + (start * 37 + 11 * i) % min(top - 10, 350) for i in range(count)
    ]
    image = lambda h, w: (
        [config.vision_start_token_id]
        + [config.image_token_id] * (h * w // 4)
        + [config.vision_end_token_id]
    )
    return [
        ("text", words(1, 9), []),
        ("one_image", words(2, 3) + image(4, 6) + words(3, 6), [[1, 4, 6]]),
        (
            "two_images",
            words(4, 2) + image(4, 4) + words(5, 2) + image(2, 6) + words(6, 7),
            [[1, 4, 4], [1, 2, 6]],
        ),
    ]


def answers(directory, stride):
    """Logits of every case and gradients of the last one, in float32 on the stored weights."""
    model = AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32).eval()
    config = model.config
    vision = config.vision_config
    width = 3 * vision.temporal_patch_size * vision.patch_size**2
    out = {"stride": torch.tensor(stride)}
    for name, token_ids, grids in cases(config):
        ids = torch.tensor([token_ids])
        inputs = {"input_ids": ids, "use_cache": False}
        if grids:
            inputs["image_grid_thw"] = torch.tensor(grids)
            inputs["pixel_values"] = pixels(sum(t * h * w for t, h, w in grids), width)
            inputs["mm_token_type_ids"] = (ids == config.image_token_id).int()
        model.zero_grad()
        logits = model(**inputs).logits[0]
        out[f"{name}.token_ids"] = ids[0].clone()
        out[f"{name}.grid_thw"] = torch.tensor(grids, dtype=torch.int64).reshape(-1, 3)
        out[f"{name}.logits"] = logits[:, ::stride].detach().clone()
    torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]).backward()
    for name, parameter in model.named_parameters():
        out[f"grad.{name}"] = (
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        )
    save_file(out, f"{directory}.answers.safetensors")


def write_companions(directory):
    """The files of a user's checkpoint other than the weights, so that rollout and training tests
    can start from it.
    """
    # A copy: archives and patches of a checkout do not all keep links.
    shutil.copyfile(TOKENIZER, directory / "tokenizer.json")
    (directory / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    dump = lambda name, value: (directory / name).write_text(json.dumps(value, indent=2) + "\n")
    dump(
        "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
            "model_max_length": 4096,
        },
    )
    dump(
        "preprocessor_config.json",
        {
            "image_processor_type": "Qwen2VLImageProcessor",
            "do_resize": False,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "merge_size": 2,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "size": {"shortest_edge": 65536, "longest_edge": 16777216},
        },
    )
    dump(
        "generation_config.json",
        {
            "bos_token_id": IDS["endoftext"],
            "eos_token_id": [IDS["im_end"], IDS["endoftext"]],
            "pad_token_id": IDS["endoftext"],
        },
    )


def write(
    directory, config, seed, dtype=torch.float32, companions=False, max_shard_size="50GB", stride=1
):
    shutil.rmtree(directory, ignore_errors=True)
    build(config, seed, dtype).save_pretrained(directory, max_shard_size=max_shard_size)
    if companions:
        write_companions(directory)
    answers(directory, stride)
    for path in [
        *directory.iterdir(),
        directory.with_name(directory.name + ".answers.safetensors"),
    ]:
        path.chmod(0o644)


UNTIED = dict(
    text=dict(
        vocab_size=160,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=12,
        pad_token_id=None,
        bos_token_id=0,
        eos_token_id=1,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [2, 2, 2],
            "mrope_interleaved": True,
        },
    ),
    vision=dict(
        depth=2,
        hidden_size=16,
        intermediate_size=24,
        patch_size=4,
        out_hidden_size=24,
        deepstack_visual_indexes=[0],
        num_position_embeddings=20,
    ),
    image_token_id=151,
    video_token_id=152,
    vision_start_token_id=153,
    vision_end_token_id=154,
)


def golden():
    base = ROOT / "tests/golden/model"
    base.mkdir(parents=True, exist_ok=True)
    write(
        base / "tiny_tied",
        configuration(tie_word_embeddings=True),
        1,
        torch.bfloat16,
        companions=True,
        stride=8,
    )
    write(base / "tiny_untied", configuration(tie_word_embeddings=False, **UNTIED), 2, stride=8)


def live(out, seed):
    base = pathlib.Path(out)
    base.mkdir(parents=True, exist_ok=True)
    write(base / "tied", configuration(tie_word_embeddings=True), seed + 1)
    write(base / "untied", configuration(tie_word_embeddings=False, **UNTIED), seed + 2)
    write(
        base / "sharded", configuration(tie_word_embeddings=False), seed + 3, max_shard_size="200KB"
    )
    write(
        base / "deep",
        configuration(
            tie_word_embeddings=True,
            text=dict(
                num_hidden_layers=4,
                num_key_value_heads=4,
                head_dim=8,
                hidden_size=40,
                rope_parameters={
                    "rope_type": "default",
                    "rope_theta": 500000.0,
                    "mrope_section": [2, 1, 1],
                    "mrope_interleaved": True,
                },
            ),
            vision=dict(
                depth=5,
                deepstack_visual_indexes=[1, 2, 4],
                num_position_embeddings=2304,
                out_hidden_size=40,
                hidden_size=36,
                num_heads=3,
            ),
        ),
        seed + 4,
    )
    write(
        base / "no_deepstack",
        configuration(tie_word_embeddings=False, vision=dict(deepstack_visual_indexes=[])),
        seed + 5,
        torch.bfloat16,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["golden"]:
        golden()
    elif len(sys.argv) >= 3 and sys.argv[1] == "live":
        live(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    else:
        sys.exit(__doc__)
