"""Writes a Qwen3-VL directory with random weights in bfloat16: random_model.py OUT TOKENIZER_DIR
[--small] [--device cuda]

Two billion parameters in the proportions of Qwen3-VL-2B (--small: four million); tokenizer and
image settings are copied from TOKENIZER_DIR.
Needs torch only: the safetensors format is a header and the bytes.
"""

import argparse
import ctypes
import json
import math
import shutil
import struct
from pathlib import Path

import torch

LARGE = {
    "text": dict(
        hidden_size=2048,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=6144,
        vocab_size=151936,
    ),
    "vision": dict(
        hidden_size=1024,
        depth=24,
        num_heads=16,
        intermediate_size=4096,
        num_position_embeddings=2304,
        deepstack_visual_indexes=[5, 11, 17],
    ),
    "sections": [24, 20, 20],
}
SMALL = {
    "text": dict(
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=512,
        vocab_size=1536,
    ),
    "vision": dict(
        hidden_size=96,
        depth=4,
        num_heads=4,
        intermediate_size=256,
        num_position_embeddings=64,
        deepstack_visual_indexes=[0, 1, 2],
    ),
    "sections": [6, 5, 5],
}
VISION = dict(
    patch_size=16,
    temporal_patch_size=2,
    spatial_merge_size=2,
    in_channels=3,
    model_type="qwen3_vl",
    hidden_act="gelu_pytorch_tanh",
    initializer_range=0.02,
)
TEXT = dict(
    model_type="qwen3_vl_text",
    hidden_act="silu",
    rms_norm_eps=1e-6,
    attention_bias=False,
    attention_dropout=0.0,
    max_position_embeddings=32768,
    rope_theta=5000000.0,
    tie_word_embeddings=True,
    dtype="bfloat16",
)
COPIED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "preprocessor_config.json",
    "generation_config.json",
)


def configuration(size, tokenizer_dir):
    ids = {
        key: value
        for key, value in json.loads((tokenizer_dir / "config.json").read_text()).items()
        if key.endswith("_token_id")
    }
    rope = {"mrope_interleaved": True, "mrope_section": size["sections"], "rope_type": "default"}
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
        "text_config": {**TEXT, **size["text"], "rope_scaling": rope},
        "vision_config": {
            **VISION,
            **size["vision"],
            "out_hidden_size": size["text"]["hidden_size"],
        },
        **ids,
    }


def shapes(text, vision):
    """Name and shape of every tensor."""
    hidden, inner, head = text["hidden_size"], text["intermediate_size"], text["head_dim"]
    queries, keys = text["num_attention_heads"] * head, text["num_key_value_heads"] * head
    yield "model.language_model.embed_tokens.weight", (text["vocab_size"], hidden)
    yield "model.language_model.norm.weight", (hidden,)
    layer = {
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "self_attn.q_norm": (head,),
        "self_attn.k_norm": (head,),
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    for i in range(text["num_hidden_layers"]):
        for name, shape in layer.items():
            yield f"model.language_model.layers.{i}.{name}.weight", shape
    width, merged = vision["hidden_size"], vision["hidden_size"] * VISION["spatial_merge_size"] ** 2
    affine = {
        "patch_embed.proj": (
            width,
            VISION["in_channels"],
            VISION["temporal_patch_size"],
            VISION["patch_size"],
            VISION["patch_size"],
        )
    }
    for j in range(vision["depth"]):
        affine |= {
            f"blocks.{j}.{name}": shape
            for name, shape in {
                "norm1": (width,),
                "norm2": (width,),
                "attn.qkv": (3 * width, width),
                "attn.proj": (width, width),
                "mlp.linear_fc1": (vision["intermediate_size"], width),
                "mlp.linear_fc2": (width, vision["intermediate_size"]),
            }.items()
        }
    mergers = {"merger": width} | {
        f"deepstack_merger_list.{k}": merged for k in range(len(vision["deepstack_visual_indexes"]))
    }
    for merger, norm in mergers.items():
        affine |= {
            f"{merger}.norm": (norm,),
            f"{merger}.linear_fc1": (merged, merged),
            f"{merger}.linear_fc2": (hidden, merged),
        }
    yield "model.visual.pos_embed.weight", (vision["num_position_embeddings"], width)
    for name, shape in affine.items():
        yield f"model.visual.{name}.weight", shape
        yield f"model.visual.{name}.bias", shape[:1]


def values(name, shape, device):
    if name.endswith(".bias"):
        return torch.zeros(shape, dtype=torch.bfloat16)
    if "norm" in name:
        return torch.ones(shape, dtype=torch.bfloat16)
    deviation = 0.02 if "embed" in name else math.prod(shape[1:]) ** -0.5
    return torch.randn(shape, device=device, dtype=torch.bfloat16).mul_(deviation).cpu()


def write(directory, tokenizer_dir, small, device):
    """Returns the numbers of parameters: all, and of the layers of the text tower."""
    size = SMALL if small else LARGE
    directory.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copyfile(tokenizer_dir / name, directory / name)
    config = configuration(size, tokenizer_dir)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    torch.manual_seed(0)
    header, end = {"__metadata__": {"format": "pt"}}, 0
    tensors = list(shapes(config["text_config"], config["vision_config"]))
    for name, shape in tensors:
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            tensor = values(name, shape, device).contiguous()
            file.write(ctypes.string_at(tensor.data_ptr(), 2 * tensor.numel()))
    layers = sum(math.prod(shape) for name, shape in tensors if ".layers." in name)
    return {
        "parameters": end // 2,
        "layers": layers,
        "embedding": size["text"]["vocab_size"] * size["text"]["hidden_size"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("tokenizer_dir", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    print(
        json.dumps(write(arguments.out, arguments.tokenizer_dir, arguments.small, arguments.device))
    )


if __name__ == "__main__":
    main()
