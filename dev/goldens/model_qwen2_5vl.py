"""Random tiny Qwen2.5-VL checkpoints with transformers' logits, gradients and greedy answers.
Formats as in model_tiny.py and
rollout_generate.py.

model_qwen2_5vl.py golden            rewrites tests/golden/model/windows_tied and windows_untied
model_qwen2_5vl.py live OUT [SEED]   writes checkpoints and their answers below OUT, with greedy
answers for OUT/model in OUT/generate.json
model_qwen2_5vl.py serve OUT SEED    writes a checkpoint to OUT whose heads vLLM's kernels for the
CPU know
model_qwen2_5vl.py check MODEL ADAPTER ANSWERS   as lora.py check, for an adapter of this family

The tied one has patches of 16 pixels, so that it reads the scenes of the other tests; windows are 2
x 2 visual tokens.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5_VLConfig

import model_tiny
import rollout_generate
from model_tiny import IDS, ROOT, changed_configuration


def configuration(**changes):
    text = dict(
        vocab_size=1368,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        rms_norm_eps=1e-6,
        pad_token_id=None,
        bos_token_id=IDS["endoftext"],
        eos_token_id=IDS["im_end"],
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1000000.0,
            "mrope_section": [2, 3, 3],
        },
    )
    vision = dict(
        depth=3,
        hidden_size=16,
        intermediate_size=28,
        num_heads=2,
        patch_size=16,
        spatial_merge_size=2,
        temporal_patch_size=2,
        window_size=64,
        out_hidden_size=32,
        fullatt_block_indexes=[1],
    )
    return changed_configuration(Qwen2_5_VLConfig, text, vision, changes)


UNTIED = dict(
    text=dict(
        vocab_size=160,
        hidden_size=24,
        num_attention_heads=3,
        num_key_value_heads=3,
        pad_token_id=3,
        bos_token_id=0,
        eos_token_id=1,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]},
    ),
    vision=dict(
        depth=2,
        hidden_size=24,
        intermediate_size=20,
        num_heads=3,
        patch_size=4,
        window_size=8,
        out_hidden_size=24,
        fullatt_block_indexes=[0],
    ),
    image_token_id=151,
    video_token_id=152,
    vision_start_token_id=153,
    vision_end_token_id=154,
)


def cases(config):
    """Those of model_tiny, with images of several windows."""
    words = lambda start, count: [5 + (start * 37 + 11 * i) % 140 for i in range(count)]
    image = lambda h, w: (
        [config.vision_start_token_id]
        + [config.image_token_id] * (h * w // 4)
        + [config.vision_end_token_id]
    )
    return [
        ("text", words(1, 9), []),
        ("one_image", words(2, 3) + image(10, 6) + words(3, 6), [[1, 10, 6]]),
        (
            "two_images",
            words(4, 2) + image(6, 8) + words(5, 2) + image(2, 6) + words(6, 7),
            [[1, 6, 8], [1, 2, 6]],
        ),
    ]


model_tiny.cases = cases


def with_family_constants(directory):
    """Companions as this family has them."""
    path = directory / "preprocessor_config.json"
    if not path.exists():
        return
    values = json.loads(path.read_text())
    values.update(
        image_mean=[0.48145466, 0.4578275, 0.40821073],
        image_std=[0.26862954, 0.26130258, 0.27577711],
        size={"shortest_edge": 3136, "longest_edge": 12845056},
    )
    path.write_text(json.dumps(values, indent=2) + "\n")


def write(directory, *arguments, **more):
    model_tiny.write(directory, *arguments, **more)
    with_family_constants(directory)


def golden():
    base = ROOT / "tests/golden/model"
    write(
        base / "windows_tied",
        configuration(tie_word_embeddings=True),
        1,
        torch.bfloat16,
        companions=True,
        stride=8,
    )
    write(base / "windows_untied", configuration(tie_word_embeddings=False, **UNTIED), 2, stride=8)


def rename(directory, prefixes):
    tensors = load_file(directory / "model.safetensors")
    for old, new in prefixes:
        tensors = {new + k[len(old) :] if k.startswith(old) else k: v for k, v in tensors.items()}
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def edit(directory, change, name="config.json"):
    path = directory / name
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config, indent=2) + "\n")


def flatten(config):
    """As the published files of transformers 4 are: the text tower's keys at the top, sections
    under rope_scaling.
    """
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    config.update({k: v for k, v in text.items() if k not in ("model_type", "layer_types")})
    config.update(
        rope_theta=rope["rope_theta"],
        rope_scaling={"type": "mrope", "mrope_section": rope["mrope_section"]},
    )


def live(out, seed):
    base = pathlib.Path(out)
    base.mkdir(parents=True, exist_ok=True)
    write(base / "tied", configuration(tie_word_embeddings=True), seed + 1)
    write(base / "untied", configuration(tie_word_embeddings=False, **UNTIED), seed + 2)
    write(
        base / "sharded", configuration(tie_word_embeddings=False), seed + 3, max_shard_size="150KB"
    )
    write(
        base / "nested",
        configuration(tie_word_embeddings=True, vision=dict(depth=4, fullatt_block_indexes=[])),
        seed + 4,
        torch.bfloat16,
    )
    rename(
        base / "nested",
        [
            ("visual.", "model.visual."),
            ("model.layers.", "model.language_model.layers."),
            ("model.embed_tokens.", "model.language_model.embed_tokens."),
            ("model.norm.", "model.language_model.norm."),
        ],
    )
    write(
        base / "flat",
        configuration(tie_word_embeddings=False, vision=dict(patch_size=14, window_size=112)),
        seed + 5,
    )
    edit(base / "flat", flatten)
    model_tiny.answers(base / "flat", 1)  # transformers reads it alike
    greedy(base, seed)


def greedy(base, seed):
    """Widths and grids of rollout_generate's prompts."""
    write(base / "model", configuration(tie_word_embeddings=False), seed + 6, companions=True)
    strengthen(base / "model")
    rollout_generate.answers(base / "model", base / "generate.json", 0)


def strengthen(directory):
    """As in rollout_generate: the next token depends on more than the last one."""
    model = model_tiny.AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "language_model" in name and ("o_proj" in name or "down_proj" in name):
                parameter.mul_(2)
    model.save_pretrained(directory)


AREAS = {"shortest_edge": 4096, "longest_edge": 1 << 15}


def serve(directory, seed):
    """Heads of 32 values, patches of 14 pixels, and a processor that resizes to the areas of
    vision_suite.py.
    """
    rope = {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [4, 6, 6]}
    text, vision = (
        dict(hidden_size=64, rope_parameters=rope),
        dict(patch_size=14, window_size=56, out_hidden_size=64),
    )
    write(
        directory,
        configuration(tie_word_embeddings=False, text=text, vision=vision),
        seed,
        companions=True,
    )
    edit(
        directory,
        lambda values: values.update(do_resize=True, patch_size=14, size=AREAS),
        "preprocessor_config.json",
    )
    strengthen(directory)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["golden"]:
        golden()
    elif len(sys.argv) >= 3 and sys.argv[1] == "live":
        live(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    elif len(sys.argv) == 4 and sys.argv[1] == "serve":
        serve(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
    elif len(sys.argv) == 5 and sys.argv[1] == "check":
        import lora

        lora.check(*sys.argv[2:])
    else:
        sys.exit(__doc__)
