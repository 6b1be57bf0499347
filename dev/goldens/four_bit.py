"""bitsandbytes' 4-bit weights: its packed values, checkpoints that transformers wrote with it, and
LoRA and DoRA on them.

four_bit.py golden    rewrites tests/golden/four_bit (base: tests/golden/model/tiny_tied). Needs
bitsandbytes; its CPU library is used.

values.safetensors: one weight and two shorter cases, quantised and dequantised. Keys
  CASE.weight                       float32 [rows, columns]
  CASE.TYPE.codes, .absmax          of blocks of CASE.blocksize values
  CASE.TYPE.double.absmax, .nested_absmax, .offset      of double quantisation
  CASE.TYPE.float32, .bfloat16, .float16                dequantised
  CASE.TYPE.double.float32, …                           dequantised, of double quantisation
  map                               the 256 values of an 8-bit absmax
Of a weight with more than 64 rows, dequantised values are stored of the first and last 16 rows.
nf4_double, fp4_skip: checkpoints as transformers saved them. Beside nf4_double the adapters lora
and dora with answers as in lora.py: logits and gradients of PEFT on the quantised model, computed
in float32; `merged.` is the dequantised weight plus the update.
"""

import pathlib
import shutil
import sys

import bitsandbytes as bnb
import bitsandbytes.functional as F
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForImageTextToText, BitsAndBytesConfig

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import lora  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/golden/four_bit"
BASE = ROOT / "tests/golden/model/tiny_tied"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MERGED = [
    "model.language_model.layers.2.mlp.down_proj",
    "model.visual.blocks.1.attn.qkv",
    "model.visual.merger.linear_fc2",
]


def shown_rows(values):
    return torch.cat([values[:16], values[-16:]]) if values.shape[0] > 64 else values


def quantise(out, key, weight, blocksize):
    out[key + "weight"] = weight
    out[key + "blocksize"] = torch.tensor(blocksize)
    for kind in ("nf4", "fp4"):
        for double in (False, True):
            codes, state = F.quantize_4bit(
                weight, blocksize=blocksize, compress_statistics=double, quant_type=kind
            )
            prefix = f"{key}{kind}.{'double.' if double else ''}"
            out[prefix + "absmax"] = state.absmax.clone()
            if double:
                out[prefix + "nested_absmax"] = state.state2.absmax.clone()
                out[prefix + "offset"] = state.offset.clone()
                out["map"] = state.state2.code.clone()
            else:
                out[prefix + "codes"] = codes.clone()
            for name, dtype in DTYPES.items():
                state.dtype = dtype
                values = F.dequantize_4bit(codes, state)
                out[prefix + name] = shown_rows(values).contiguous().clone()


def values():
    generator = torch.Generator().manual_seed(5)
    out = {}
    # 264 blocks: two blocks of nested statistics
    weight = torch.randn(264, 64, generator=generator) * torch.logspace(-3, 1, 264).unsqueeze(1)
    weight[3] = 0
    weight[4, ::3] = 0
    quantise(out, "long.", weight.to(torch.bfloat16).float(), 64)
    quantise(out, "tail.", torch.randn(13, 10, generator=generator), 64)
    quantise(out, "wide.", torch.randn(6, 200, generator=generator), 128)
    save_file(out, OUT / "values.safetensors")


def load(path, dtype=torch.float32, **more):
    return AutoModelForImageTextToText.from_pretrained(path, dtype=dtype, device_map="cpu", **more)


def checkpoint(name, dtype, **more):
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=dtype, **more)
    load(BASE, dtype, quantization_config=config).save_pretrained(OUT / name)
    (OUT / name / "generation_config.json").unlink(missing_ok=True)


def adapter(name, seed):
    torch.manual_seed(seed)
    model = load(OUT / "nf4_double")
    model = get_peft_model(
        model,
        LoraConfig(
            r=4,
            lora_alpha=10,
            lora_dropout=0.0,
            use_dora=name == "dora",
            target_modules=lora.SOME,
            task_type="CAUSAL_LM",
        ),
    )
    lora.perturb(model, seed + 1)
    model.save_pretrained(OUT / name)
    (OUT / name / "README.md").unlink(missing_ok=True)
    model.eval()
    ids, kwargs = lora.inputs(model.get_base_model().config)
    logits = model(**kwargs).logits[0]
    torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]).backward()
    answers = {
        "stride": torch.tensor(8),
        "token_ids": ids[0].clone(),
        "logits": logits.detach()[:, ::8].contiguous().clone(),
    }
    for parameter_name, parameter in model.named_parameters():
        if parameter.requires_grad:
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            answers["grad." + lora.file_name(parameter_name)] = grad.clone()
    for module_name, module in model.get_base_model().named_modules():
        if module_name not in MERGED:
            continue
        weight = module.base_layer.weight
        assert isinstance(weight, bnb.nn.Params4bit)
        merged = F.dequantize_4bit(weight.data, weight.quant_state).float()
        merged = merged + module.get_delta_weight("default")
        if name == "dora":
            magnitude = module.lora_magnitude_vector["default"].weight
            merged = (magnitude / merged.norm(dim=1)).unsqueeze(1) * merged
        answers["merged." + module_name] = merged.detach().clone()
    save_file(answers, OUT / f"{name}.answers.safetensors")


def golden():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    values()
    checkpoint(
        "nf4_double", torch.float32, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True
    )
    checkpoint(
        "fp4_skip",
        torch.bfloat16,
        bnb_4bit_quant_type="fp4",
        llm_int8_skip_modules=["model.visual", "lm_head"],
    )
    adapter("lora", 1)
    adapter("dora", 2)
    (OUT / "README.how").write_text(
        "python dev/goldens/four_bit.py golden   (bitsandbytes "
        f"{bnb.__version__}, transformers 5.23, peft 0.21.2, torch 2.13, CPU without AVX-512)\n"
    )
    for path in OUT.rglob("*"):
        if path.is_file():
            path.chmod(0o644)


if __name__ == "__main__":
    torch.set_num_threads(1)
    golden()
