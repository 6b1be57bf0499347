"""Random tiny Qwen3.5 checkpoints with transformers' logits, gradients and greedy answers. Formats
as in model_tiny.py and
rollout_generate.py.

model_qwen3_5.py golden            rewrites tests/golden/model/delta_tied and delta_untied
model_qwen3_5.py live OUT [SEED]   writes checkpoints and their answers below OUT, with greedy
answers for OUT/model in OUT/generate.json
model_qwen3_5.py check MODEL ADAPTER ANSWERS   as lora.py check, for an adapter of this family

Sequences are never packed here: transformers' own delta rule for CPUs ignores the bounds of packed
segments. The cases length_N are texts of
the lengths at which chunks of 64 tokens begin and end. The tied checkpoint is stored as published
files are: bfloat16, with A_log and the
gated norm in float32 and the 15 tensors of multi-token prediction, which transformers ignores.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText, Qwen3_5Config

import model_tiny
import rollout_generate
from model_tiny import IDS, ROOT, changed_configuration

LENGTHS = [1, 3, 4, 63, 64, 65, 200]

CHAT_TEMPLATE = """{%- for message in messages %}
    {%- set content = message.content %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
    {%- if content is string %}
        {{- content|trim }}
    {%- else %}
        {%- for part in content %}
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
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- else %}
        {{- '<think>\\n' }}
    {%- endif %}
{%- endif %}
"""


def configuration(**changes):
    text = dict(
        vocab_size=1368,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        rms_norm_eps=1e-6,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=IDS["endoftext"],
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000000.0,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
            "partial_rotary_factor": 0.25,
        },
    )
    vision = dict(
        depth=2,
        hidden_size=24,
        intermediate_size=40,
        num_heads=2,
        patch_size=16,
        spatial_merge_size=2,
        temporal_patch_size=2,
        num_position_embeddings=36,
        out_hidden_size=32,
    )
    return changed_configuration(Qwen3_5Config, text, vision, changes)


UNTIED = dict(
    text=dict(
        vocab_size=160,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=3,
        head_dim=12,
        linear_num_key_heads=1,
        linear_num_value_heads=3,
        linear_key_head_dim=4,
        linear_value_head_dim=6,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        pad_token_id=3,
        eos_token_id=1,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [1, 1, 1],
            "partial_rotary_factor": 0.5,
        },
    ),
    vision=dict(
        depth=2,
        hidden_size=16,
        intermediate_size=24,
        patch_size=4,
        out_hidden_size=24,
        num_position_embeddings=20,
    ),
    image_token_id=151,
    video_token_id=152,
    vision_start_token_id=153,
    vision_end_token_id=154,
)

plain_build, plain_cases = model_tiny.build, model_tiny.cases


def build(config, seed, dtype):
    """As in model_tiny, but norms are zero-centred, and decays are slow enough for states to matter
    over hundreds of tokens.
    """
    model = plain_build(config, seed, torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if (
                "language_model" in name
                and name.endswith("norm.weight")
                and "linear_attn" not in name
            ):
                parameter.sub_(1)
            elif name.endswith("layernorm.weight"):
                parameter.sub_(1)
            elif name.endswith("dt_bias"):
                parameter.copy_(-4 + 1.5 * torch.randn_like(parameter))
            elif name.endswith("A_log"):
                parameter.copy_(0.5 * torch.randn_like(parameter))
    return model.to(dtype).eval()


def cases(config):
    """The lengths, then those of model_tiny (gradients belong to the last)."""
    top = min(config.text_config.vocab_size - 10, 350)
    words = lambda count: [5 + (count * 13 + 11 * i + i * i // 7) % top for i in range(count)]
    lengths = [
        (
            f"length_{n}",
            [w if w not in (config.image_token_id, config.video_token_id) else 5 for w in words(n)],
            [],
        )
        for n in LENGTHS
    ]
    return lengths + plain_cases(config)


model_tiny.build, model_tiny.cases, rollout_generate.build = build, cases, build


def mtp_tensors(config, seed):
    """The 15 tensors of multi-token prediction of a published file, random."""
    torch.manual_seed(seed)
    text = config.text_config
    H, I, D = text.hidden_size, text.intermediate_size, text.head_dim
    q, kv = text.num_attention_heads * D, text.num_key_value_heads * D
    layer = "mtp.layers.0."
    shapes = {
        "mtp.fc.weight": (H, 2 * H),
        "mtp.norm.weight": (H,),
        "mtp.pre_fc_norm_embedding.weight": (H,),
        "mtp.pre_fc_norm_hidden.weight": (H,),
        layer + "input_layernorm.weight": (H,),
        layer + "post_attention_layernorm.weight": (H,),
        layer + "mlp.gate_proj.weight": (I, H),
        layer + "mlp.up_proj.weight": (I, H),
        layer + "mlp.down_proj.weight": (H, I),
        layer + "self_attn.q_proj.weight": (2 * q, H),
        layer + "self_attn.k_proj.weight": (kv, H),
        layer + "self_attn.v_proj.weight": (kv, H),
        layer + "self_attn.o_proj.weight": (H, q),
        layer + "self_attn.q_norm.weight": (D,),
        layer + "self_attn.k_norm.weight": (D,),
    }
    return {name: torch.randn(shape).to(torch.bfloat16) for name, shape in shapes.items()}


def store_as_published(directory, config, seed):
    """Mixed dtypes and tensors of multi-token prediction."""
    path = directory / "model.safetensors"
    tensors = load_file(path)
    for name in tensors:
        if name.endswith(("A_log", "linear_attn.norm.weight")):
            # values that bfloat16 cannot hold
            tensors[name] = tensors[name].float() * (1 + 2.0**-12)
    tensors.update(mtp_tensors(config, seed))
    save_file(tensors, path, metadata={"format": "pt"})


def with_family_files(directory):
    """Companions as this family has them."""
    path = directory / "chat_template.jinja"
    if path.exists():
        path.write_text(CHAT_TEMPLATE)


def write(directory, config, seed, dtype=torch.float32, published=False, stride=1, **more):
    model_tiny.write(directory, config, seed, dtype, stride=stride, **more)
    with_family_files(directory)
    if published:
        store_as_published(directory, config, seed)
        model_tiny.answers(directory, stride)


def golden():
    base = ROOT / "tests/golden/model"
    write(
        base / "delta_tied",
        configuration(tie_word_embeddings=True),
        1,
        torch.bfloat16,
        published=True,
        companions=True,
        stride=24,
    )
    write(base / "delta_untied", configuration(tie_word_embeddings=False, **UNTIED), 2, stride=8)


def edit(directory, change, name="config.json"):
    path = directory / name
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config, indent=2) + "\n")


def shorten(config):
    """Keys as older files have them: the interval instead of the types, the factor beside the
    rotary settings.
    """
    text = config["text_config"]
    del text["layer_types"]
    text["full_attention_interval"] = 3
    text["partial_rotary_factor"] = text["rope_parameters"].pop("partial_rotary_factor")
    config["vision_config"].update(model_type="qwen3_5", deepstack_visual_indexes=[])


def live(out, seed):
    base = pathlib.Path(out)
    base.mkdir(parents=True, exist_ok=True)
    write(
        base / "tied",
        configuration(tie_word_embeddings=True),
        seed + 1,
        torch.bfloat16,
        published=True,
    )
    write(base / "untied", configuration(tie_word_embeddings=False, **UNTIED), seed + 2)
    write(
        base / "sharded", configuration(tie_word_embeddings=False), seed + 3, max_shard_size="150KB"
    )
    write(
        base / "deep",
        configuration(
            tie_word_embeddings=True, text=dict(num_hidden_layers=8, linear_num_key_heads=4)
        ),
        seed + 4,
    )
    types = ["linear_attention", "linear_attention", "full_attention"] * 2
    write(
        base / "older",
        configuration(tie_word_embeddings=False, text=dict(num_hidden_layers=6, layer_types=types)),
        seed + 5,
    )
    edit(base / "older", shorten)
    model_tiny.answers(base / "older", 1)  # transformers reads it alike
    greedy(base, seed)


def greedy(base, seed):
    """Widths and grids of rollout_generate's prompts."""
    write(base / "model", configuration(tie_word_embeddings=False), seed + 6, companions=True)
    model = AutoModelForImageTextToText.from_pretrained(base / "model", dtype=torch.float32)
    with (
        torch.no_grad()
    ):  # as in rollout_generate: the next token depends on more than the last one
        for name, parameter in model.named_parameters():
            if "language_model" in name and name.endswith(
                ("o_proj.weight", "out_proj.weight", "down_proj.weight")
            ):
                parameter.mul_(2)
    model.save_pretrained(base / "model")
    rollout_generate.answers(base / "model", base / "generate.json", 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["golden"]:
        golden()
    elif len(sys.argv) >= 3 and sys.argv[1] == "live":
        live(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    elif len(sys.argv) == 5 and sys.argv[1] == "check":
        import lora

        lora.check(*sys.argv[2:])
    else:
        sys.exit(__doc__)
