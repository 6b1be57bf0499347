"""Makes the untrained checkpoint the demonstration starts from: a small Qwen3-VL with random
weights and its own tokenizer.

    make_base.py OUT [--seed S]

3.2 M parameters in float32: text hidden 192, 4 layers, 6 query heads over 2 key heads; vision
hidden 96, 4 blocks, patches of 16;
DeepStack features after three vision blocks; tied embeddings. Norms are one, biases zero, text
embeddings normal with deviation 0.02. What
differs from the usual start lets so small a model see where things are within some hundred steps:
- matrices have deviation fan_in^-1/2 (0.02 is made for much wider layers and would start every
  branch near zero);
- patch positions are waves over columns and rows, as strong as the patches themselves, for only
  they say where a patch is;
- coord tokens are waves over the bins, so that neighbouring bins look alike.
The directory is an ordinary Hugging Face one; tokenizer.json comes from tokenizer.py.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from tokenizer import NUM_BINS, build_tokenizer

TEXT = {
    "hidden_size": 192,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 512,
}
VISION = {
    "hidden_size": 96,
    "depth": 4,
    "num_heads": 4,
    "intermediate_size": 256,
    "patch_size": 16,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "in_channels": 3,
    "num_position_embeddings": 64,
    "deepstack_visual_indexes": [0, 1, 2],
    "out_hidden_size": TEXT["hidden_size"],
}

# The layout of Qwen chats: <|im_start|>role, line break, content, <|im_end|>, line break; an image
# is one pad between two markers.
CHAT_TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}
{{- message.content }}
{%- else %}
{%- for part in message.content %}
{%- if part.type == 'image' %}
{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- elif part.type == 'text' %}
{{- part.text }}
{%- else %}
{{- raise_exception('this model reads text and images only') }}
{%- endif %}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def tensor_shapes(vocab_size):
    """Name and shape of every tensor, in the checkpoint's order."""
    h, inter, d = TEXT["hidden_size"], TEXT["intermediate_size"], VISION["hidden_size"]
    hd, q, kv = (
        TEXT["head_dim"],
        TEXT["num_attention_heads"] * TEXT["head_dim"],
        TEXT["num_key_value_heads"] * TEXT["head_dim"],
    )
    merged = d * VISION["spatial_merge_size"] ** 2
    shapes = {
        "model.language_model.embed_tokens.weight": (vocab_size, h),
        "model.language_model.norm.weight": (h,),
    }
    for i in range(TEXT["num_hidden_layers"]):
        layer = {
            "input_layernorm": (h,),
            "post_attention_layernorm": (h,),
            "self_attn.q_proj": (q, h),
            "self_attn.k_proj": (kv, h),
            "self_attn.v_proj": (kv, h),
            "self_attn.o_proj": (h, q),
            "self_attn.q_norm": (hd,),
            "self_attn.k_norm": (hd,),
            "mlp.gate_proj": (inter, h),
            "mlp.up_proj": (inter, h),
            "mlp.down_proj": (h, inter),
        }
        shapes |= {
            f"model.language_model.layers.{i}.{name}.weight": shape for name, shape in layer.items()
        }

    def affine(prefix, shape):
        shapes[f"{prefix}.weight"] = shape
        shapes[f"{prefix}.bias"] = shape[:1]

    patch, depth_t = VISION["patch_size"], VISION["temporal_patch_size"]
    affine("model.visual.patch_embed.proj", (d, VISION["in_channels"], depth_t, patch, patch))
    shapes["model.visual.pos_embed.weight"] = (VISION["num_position_embeddings"], d)
    for j in range(VISION["depth"]):
        block = f"model.visual.blocks.{j}"
        affine(f"{block}.norm1", (d,))
        affine(f"{block}.norm2", (d,))
        affine(f"{block}.attn.qkv", (3 * d, d))
        affine(f"{block}.attn.proj", (d, d))
        affine(f"{block}.mlp.linear_fc1", (VISION["intermediate_size"], d))
        affine(f"{block}.mlp.linear_fc2", (d, VISION["intermediate_size"]))
    mergers = {"model.visual.merger": d}
    mergers |= {
        f"model.visual.deepstack_merger_list.{k}": merged
        for k in range(len(VISION["deepstack_visual_indexes"]))
    }
    for merger, norm_width in mergers.items():
        affine(f"{merger}.norm", (norm_width,))
        affine(f"{merger}.linear_fc1", (merged, merged))
        affine(f"{merger}.linear_fc2", (h, merged))
    return shapes


def waves(count, width, max_periods, generator):
    """[count, width]: column j is a cosine of random phase with 0.25 to `max_periods` periods over
    the rows; its mean square is about 1.
    """
    periods = 0.25 * (4.0 * max_periods) ** torch.rand(width, generator=generator)
    phases = torch.rand(width, generator=generator)
    return 2**0.5 * torch.cos(
        2 * math.pi * ((torch.arange(count)[:, None] + 0.5) / count * periods + phases)
    )


def patch_positions(num_positions, width, generator):
    """Half of the columns encode the position in a row of patches, half that in a column."""
    side = math.isqrt(num_positions)
    over_x, over_y = (0.5 * waves(side, width // 2, 2.0, generator) for _ in range(2))
    return torch.cat([over_x.repeat(side, 1), over_y.repeat_interleave(side, dim=0)], dim=1)


def make_tensors(ids, seed):
    vocab_size = len(ids)
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in tensor_shapes(vocab_size).items():
        if "norm" in name:
            tensors[name] = torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)
        elif name.endswith("bias"):
            tensors[name] = torch.zeros(shape)
        else:
            deviation = 0.02 if "embed_tokens" in name else math.prod(shape[1:]) ** -0.5
            tensors[name] = torch.empty(shape).normal_(0.0, deviation, generator=generator)
    tensors["model.visual.pos_embed.weight"] = patch_positions(
        VISION["num_position_embeddings"], VISION["hidden_size"], generator
    )
    first = ids["<|coord_0|>"]
    tensors["model.language_model.embed_tokens.weight"][first : first + NUM_BINS] = 0.02 * waves(
        NUM_BINS, TEXT["hidden_size"], 16.0, generator
    )
    return tensors


def config(ids, vocab_size):
    rope = {"mrope_interleaved": True, "mrope_section": [6, 5, 5], "rope_type": "default"}
    text = TEXT | {
        "model_type": "qwen3_vl_text",
        "vocab_size": vocab_size,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "max_position_embeddings": 4096,
        "rope_theta": 10000.0,
        "rope_scaling": rope,
        "tie_word_embeddings": True,
        "use_cache": True,
        "dtype": "float32",
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
    }
    vision = VISION | {
        "model_type": "qwen3_vl",
        "hidden_act": "gelu_pytorch_tanh",
        "initializer_range": 0.02,
    }
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "dtype": "float32",
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": True,
        "text_config": text,
        "vision_config": vision,
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    tokenizer, ids = build_tokenizer()
    vocab_size = len(ids)
    write_json(args.out / "tokenizer.json", tokenizer)
    write_json(
        args.out / "tokenizer_config.json",
        # Not Qwen2Tokenizer: transformers would then replace this file's split pattern by Qwen's
        # own.
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_max_length": 4096,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "chat_template": CHAT_TEMPLATE,
        },
    )
    write_json(args.out / "config.json", config(ids, vocab_size))
    stops = [ids["<|im_end|>"], ids["<|endoftext|>"]]
    write_json(
        args.out / "generation_config.json",
        {
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": stops,
            "pad_token_id": ids["<|endoftext|>"],
            "do_sample": False,
        },
    )
    write_json(
        args.out / "preprocessor_config.json",
        {
            "image_processor_type": "Qwen2VLImageProcessorFast",
            "processor_class": "Qwen3VLProcessor",
            "patch_size": 16,
            "temporal_patch_size": 2,
            "merge_size": 2,
            "do_convert_rgb": True,
            "do_resize": True,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "resample": 3,
            "size": {"shortest_edge": 1024, "longest_edge": 1048576},
        },
    )
    tensors = make_tensors(ids, args.seed)
    weights = args.out / "model.safetensors"
    save_file(tensors, weights, metadata={"format": "pt"})
    weights.chmod(0o644)
    total = sum(tensor.numel() for tensor in tensors.values())
    print(f"{args.out}: {total:,} parameters, {vocab_size} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
