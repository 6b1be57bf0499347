"""Copies a checkpoint directory with its weights rounded to bfloat16: to_bfloat16.py FROM TO
[FROM_TOKENIZER_DIR]

Only the files a checkpoint needs are copied (no training state); those missing in FROM are taken
from the third directory.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

FILES = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "rematch_prompt.json",
)


def set_dtype(config):
    """Every spelling of the weights' type, on the top level and in the two towers."""
    for part in (config, config.get("text_config", {}), config.get("vision_config", {})):
        for key in ("dtype", "torch_dtype"):
            if key in part:
                part[key] = "bfloat16"


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    fallback = Path(sys.argv[3]) if len(sys.argv) == 4 else source
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        found = [
            directory / name for directory in (source, fallback) if (directory / name).exists()
        ]
        if found:
            shutil.copyfile(found[0], target / name)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    set_dtype(config)
    (target / "config.json").write_text(
        json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    tensors = {}
    for shard in sorted(source.glob("*.safetensors")):
        tensors |= load_file(shard)
    if not tensors:
        print(f"error: no *.safetensors in {source}", file=sys.stderr)
        return 3
    weights = target / "model.safetensors"
    save_file(
        {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()},
        weights,
        metadata={"format": "pt"},
    )
    weights.chmod(0o644)
    print(f"{target}: {len(tensors)} tensors, {weights.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
