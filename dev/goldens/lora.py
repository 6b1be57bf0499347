"""PEFT's LoRA and DoRA on tiny Qwen3-VL checkpoints: adapter directories as PEFT writes them, with
logits, gradients and merged weights.

lora.py autocast          rewrites tests/golden/lora/autocast.safetensors: bfloat16 layers of
layer_case under torch.autocast
lora.py golden            rewrites tests/golden/lora (base model: tests/golden/model/tiny_tied, in
float32)
lora.py live OUT [SEED]   a random float32 checkpoint OUT/base, adapters on all of its Linear
layers, everything compared in full
lora.py tokens OUT [SEED]     OUT/tied and OUT/untied (random, float32) with adapters TIED.rows,
TIED.saved that train fresh tokens, and answers
lora.py check BASE ADAPTER ANSWERS   loads an adapter that Rematch wrote with PEFT and compares its
logits and merged logits with ANSWERS
lora.py merged MODEL ANSWERS         compares the logits of a checkpoint that Rematch merged with
ANSWERS

Beside each adapter directory CASE: CASE.answers.safetensors with
  logits [T, V/stride]   of the case "two_images" of model_tiny.py, float32
  grad.NAME              of the mean next-token cross-entropy, by tensor name without PEFT's prefix
  merged.MODULE          weights after merge_and_unload
layers.safetensors: single Linear layers in float32 and bfloat16 (see layer_case).
Dropout keeps element i (flat) of a module's input when (i·7919 + 31·len(name)) mod 10 > 0, so that
anyone can give the same mask.
"""

import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import Linear as LoraLinear
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import model_tiny  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = "base_model.model."
EMBEDDING = "model.language_model.embed_tokens"
SOME = (
    r".*(layers\.2\.(self_attn|mlp)\.\w+_proj|blocks\.1\.(attn\.(qkv|proj)|mlp\.linear_fc[12])"
    r"|visual\.merger\.linear_fc[12]|deepstack_merger_list\.1\.linear_fc1)"
)
CASES = {  # name: (dora, dropout)
    "lora": (False, 0.0),
    "dora": (True, 0.0),
    "lora_dropout": (False, 0.1),
    "dora_dropout": (True, 0.1),
}


class Mask(torch.nn.Module):
    """Dropout with the mask of the recipe."""

    def __init__(self, name, p):
        super().__init__()
        self.length, self.p = len(name), p

    def forward(self, x):
        if not self.training:
            return x
        keep = (torch.arange(x.numel()) * 7919 + 31 * self.length) % 10 > 0
        return x * (keep.view(x.shape).to(x.dtype) / (1 - self.p))


def perturb(model, seed):
    """B away from zero and magnitudes away from the norm, or DoRA would be the identity."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
            elif "lora_magnitude" in name:
                parameter.mul_(1 + 0.2 * torch.randn(parameter.shape, generator=generator))
            elif "modules_to_save" in name or "trainable_tokens_delta" in name:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


def set_masks(model, p):
    for name, module in model.named_modules():
        if isinstance(module, LoraLinear) and p > 0:
            module.lora_dropout["default"] = Mask(name.removeprefix(PREFIX), p)


def inputs(config):
    cases = {name: (ids, grids) for name, ids, grids in model_tiny.cases(config)}
    token_ids, grids = cases["two_images"]
    width = 3 * config.vision_config.temporal_patch_size * config.vision_config.patch_size**2
    ids = torch.tensor([token_ids])
    return ids, {
        "input_ids": ids,
        "use_cache": False,
        "image_grid_thw": torch.tensor(grids),
        "pixel_values": model_tiny.pixels(sum(t * h * w for t, h, w in grids), width),
        "mm_token_type_ids": (ids == config.image_token_id).int(),
    }


def file_name(name):
    """Name in adapter_model.safetensors, without the prefix."""
    name = name.removeprefix(PREFIX).replace(".modules_to_save.default", "").replace(".default", "")
    return name.replace("lora_magnitude_vector.weight", "lora_magnitude_vector")


def write_case(out, name, base, targets, seed, stride, merged_modules, modules_to_save, **more):
    use_dora, dropout = CASES.get(name, (False, 0.0))
    torch.manual_seed(seed)
    model = AutoModelForImageTextToText.from_pretrained(base, dtype=torch.float32)
    lora = LoraConfig(
        r=4,
        lora_alpha=10,
        lora_dropout=dropout,
        use_dora=use_dora,
        target_modules=targets,
        task_type="CAUSAL_LM",
        modules_to_save=modules_to_save,
        **more,
    )
    model = get_peft_model(model, lora)
    perturb(model, seed + 1)
    model.save_pretrained(out / name)
    (out / name / "README.md").unlink(missing_ok=True)
    set_masks(model, dropout)
    model.train(dropout > 0)
    config = model.get_base_model().config
    ids, kwargs = inputs(config)
    logits = model(**kwargs).logits[0]
    torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]).backward()
    answers = {
        "stride": torch.tensor(stride),
        "token_ids": ids[0].clone(),
        "logits": logits.detach()[:, ::stride].clone(),
    }
    for parameter_name, parameter in model.named_parameters():
        if parameter.requires_grad:
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            answers["grad." + file_name(parameter_name)] = grad.clone()
    merged = model.eval().merge_and_unload()
    for module_name, module in merged.named_modules():
        if isinstance(module, torch.nn.Linear) and (
            merged_modules is None or module_name in merged_modules
        ):
            answers["merged." + module_name] = module.weight.detach().clone()
    if more:
        answers["merged." + EMBEDDING] = merged.get_input_embeddings().weight.detach().clone()
    save_file(answers, f"{out / name}.answers.safetensors")


def layer_case(out, key, dtype, bias, use_dora, dropout, seed, autocast=False):
    """One Linear [6, 5] of rank 2: x, weight, bias, A, B, m, upstream g -> y, the gradients of A,
    B, m and x, and the merged weight.
    """
    torch.manual_seed(seed)
    host = torch.nn.Sequential(torch.nn.Linear(5, 6, bias=bias, dtype=dtype))
    model = get_peft_model(
        host,
        LoraConfig(
            r=2, lora_alpha=3, lora_dropout=dropout, use_dora=use_dora, target_modules=["0"]
        ),
    )
    if use_dora:
        out[key + "initial_magnitude"] = (
            model.base_model.model[0].lora_magnitude_vector["default"].weight.detach().clone()
        )
    perturb(model, seed + 1)
    set_masks(model, dropout)
    layer = model.base_model.model[0]
    x = torch.randn(7, 5).to(dtype).requires_grad_()
    g = torch.randn(7, 6).to(dtype)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y = model.train()(x)
    y.backward(g.to(y.dtype))
    parts = {
        "x": x,
        "g": g,
        "y": y,
        "weight": layer.base_layer.weight,
        "a": layer.lora_A["default"].weight,
        "b": layer.lora_B["default"].weight,
        "grad_x": x.grad,
        "grad_a": layer.lora_A["default"].weight.grad,
        "grad_b": layer.lora_B["default"].weight.grad,
    }
    if bias:
        parts["bias"] = layer.base_layer.bias
    if use_dora:
        parts["m"] = layer.lora_magnitude_vector["default"].weight
        parts["grad_m"] = parts["m"].grad
    for name, tensor in parts.items():
        out[key + name] = tensor.detach().clone()
    out[key + "merged"] = model.eval().merge_and_unload()[0].weight.detach().clone()


def layers(path):
    out = {}
    for dtype, dtype_name in ((torch.float32, "float32"), (torch.bfloat16, "bfloat16")):
        for bias in (False, True):
            for case, (use_dora, dropout) in CASES.items():
                layer_case(
                    out,
                    f"{dtype_name}.{'bias' if bias else 'plain'}.{case}.",
                    dtype,
                    bias,
                    use_dora,
                    dropout,
                    len(out),
                )
    save_file(out, path)


def autocast_layers(path):
    out = {}
    for bias in (False, True):
        for case, (use_dora, dropout) in CASES.items():
            layer_case(
                out,
                f"autocast.{'bias' if bias else 'plain'}.{case}.",
                torch.bfloat16,
                bias,
                use_dora,
                dropout,
                100 + len(out),
                autocast=True,
            )
    save_file(out, path)


def golden():
    out = ROOT / "tests/golden/lora"
    layers(out / "layers.safetensors")
    merged = [
        "model.language_model.layers.2.mlp.down_proj",
        "model.visual.blocks.1.attn.qkv",
        "model.visual.merger.linear_fc2",
    ]
    for i, name in enumerate(CASES):
        write_case(
            out,
            name,
            "tests/golden/model/tiny_tied",
            SOME,
            10 * i,
            8,
            merged,
            ["deepstack_merger_list.0.norm"] if name == "dora" else None,
        )
    for path in out.rglob("*"):
        if path.is_file():
            path.chmod(0o644)


def live(out, seed):
    base = pathlib.Path(out)
    base.mkdir(parents=True, exist_ok=True)
    model_tiny.write(
        base / "base", model_tiny.configuration(tie_word_embeddings=False), seed, companions=True
    )
    for i, name in enumerate(CASES):
        write_case(
            base,
            name,
            base / "base",
            "all-linear",
            seed + 10 * i,
            1,
            None,
            ["norm1"] if name == "lora" else None,
        )


def tokens(out, seed):
    """PEFT's two ways to train new rows, on tied and on untied weights; `apart` trains two matrices
    where the base model has one.
    """
    out = pathlib.Path(out)
    ids = list(range(368, 388)) + [7]
    both = ["embed_tokens", "lm_head"]
    for tied in (True, False):
        base = out / ("tied" if tied else "untied")
        base.mkdir(parents=True, exist_ok=True)
        model_tiny.write(
            base, model_tiny.configuration(tie_word_embeddings=tied), seed + tied, companions=True
        )
        case = lambda name, **more: write_case(
            out,
            f"{base.name}.{name}",
            base,
            ["q_proj", "linear_fc2"],
            seed + len(name),
            1,
            None,
            more.pop("saved", None),
            **more,
        )
        case("rows", trainable_token_indices=ids if tied else {"embed_tokens": ids, "lm_head": ids})
        case("saved", saved=list(both), ensure_weight_tying=tied)
        if tied:
            case("apart", saved=list(both), ensure_weight_tying=False)
        else:
            case("embedding", trainable_token_indices=ids)


def check(base, adapter, answers):
    expected = load_file(answers)
    model = AutoModelForImageTextToText.from_pretrained(base, dtype=torch.float32)
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PeftModel.from_pretrained(model, adapter).eval()
    complaints = [str(w.message) for w in caught if "adapter keys" in str(w.message)]
    assert not complaints, complaints
    stored = {
        k.removeprefix(PREFIX)
        for k in load_file(pathlib.Path(adapter) / "adapter_model.safetensors")
    }
    own = {
        file_name(n)
        for n, _ in model.named_parameters(remove_duplicate=False)
        if "lora_" in n or "modules_to_save" in n
    }
    own |= {file_name(n) for n, _ in model.named_parameters() if "trainable_tokens_delta" in n}
    assert stored == own, stored ^ own
    ids, kwargs = inputs(model.get_base_model().config)
    assert torch.equal(ids[0], expected["token_ids"])
    with torch.no_grad():
        for got in (model(**kwargs).logits[0], model.merge_and_unload()(**kwargs).logits[0]):
            error = (got - expected["logits"]).abs().max().item() / expected[
                "logits"
            ].abs().max().item()
            print(error)
            assert error < 1e-5, error


def merged(directory, answers):
    expected = load_file(answers)
    model, info = AutoModelForImageTextToText.from_pretrained(
        directory, dtype=torch.float32, output_loading_info=True
    )
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    with torch.no_grad():
        got = model.eval()(**inputs(model.config)[1]).logits[0]
    error = (got - expected["logits"]).abs().max().item() / expected["logits"].abs().max().item()
    assert error < 1e-5, error


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["golden"]:
        golden()
    elif sys.argv[1:] == ["autocast"]:
        autocast_layers(ROOT / "tests/golden/lora/autocast.safetensors")
    elif len(sys.argv) >= 3 and sys.argv[1] == "live":
        live(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    elif len(sys.argv) >= 3 and sys.argv[1] == "tokens":
        tokens(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    elif len(sys.argv) == 5 and sys.argv[1] == "check":
        check(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "merged":
        merged(*sys.argv[2:])
    else:
        sys.exit(__doc__)
