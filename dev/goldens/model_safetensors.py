"""Writes tests/golden/model_safetensors.bin: a file of the reference writer with every dtype we
map, odd names, scalars and empty tensors.
"""

import pathlib

import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/model_safetensors.bin"
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
    torch.int16,
    torch.uint16,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.uint32,
    torch.float32,
    torch.float64,
    torch.int64,
    torch.uint64,
    torch.complex64,
]
tensors = {}
for dtype in DTYPES:
    base = torch.tensor([[0, 1, 1], [1, 0, 1]])
    tensors["matrix." + str(dtype).removeprefix("torch.")] = base.to(dtype)
tensors["scalar"] = torch.tensor(1.5)
tensors["empty"] = torch.zeros(0, 4, dtype=torch.bfloat16)
tensors['odd "name"\n\u00e9\u4e2d\\'] = torch.arange(5, dtype=torch.int64)
tensors["Upper"] = torch.tensor([2.5, -1.0])
save_file(tensors, OUT, metadata={"format": "pt"})
OUT.chmod(0o644)
