"""Writes sixty pictures of every awkward kind and what AutoProcessor makes of them for both
families of models.

Usage: vision_suite.py OUT_DIR [--pictures]
OUT_DIR gets the pictures; MODEL/, a processor as `save_pretrained` writes it;
NAME.MODEL.BACKEND.f32, the pixel values; and manifest.jsonl:
{"file", "model", "backend", "grid", "tokens"} or {"file", "refused"}, the words of our error for
what Pillow shows but we refuse.
With --pictures only these and their names: {"file"}, {"file", "refused"}.
Pictures are given to the processor as a server gives them: opened by Pillow. With a torchvision
(find_torchvision.py) the processor
is AutoProcessor's; without, AutoProcessor refuses to load: its image processor is built by hand, on
stand-ins (vision_images.py).
"""

import argparse
import io
import json
import pathlib
import struct

from find_torchvision import find_torchvision

HAS_TORCHVISION = find_torchvision()

import numpy as np
from PIL import Image, ImageOps
from tokenizers import Tokenizer
from transformers import AutoImageProcessor
from transformers.models.qwen2 import Qwen2Tokenizer
from vision_images import png_bytes, saved, scene, torchvision_processor
from vision_resize import MODELS, checker

TOKENIZER = pathlib.Path(__file__).parents[2] / "tests/golden/tokenizer/tokenizer.json"
LEAST, MOST = 4096, 1 << 15  # areas in pixels: small, so that little is written
PAD = "<|image_pad|>"


def with_orientation(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def opaque_pictures(rng):
    """name -> bytes: sizes and codings without transparency."""

    def photo(height, width):
        return Image.fromarray(scene(rng, height, width))

    sizes = [
        (1, 1),
        (1, 90),
        (90, 1),
        (2, 3),
        (1, 200),
        (200, 1),
        (3, 600),
        (50, 150),
        (300, 100),
        (27, 29),
        (63, 65),
        (64, 64),
        (128, 256),
        (427, 640),
        (640, 427),
        (900, 301),
        (255, 257),
        (48, 80),
        (28, 3000),
        (33, 31),
    ]
    files = {
        f"{height}x{width}.png": saved(photo(height, width), format="png")
        for height, width in sizes
    }
    files["checker.png"] = saved(Image.fromarray(checker(111, 170)), format="png")
    files["noise.png"] = saved(
        Image.fromarray(rng.integers(0, 256, (99, 201, 3), dtype=np.uint8)), format="png"
    )
    files["interlaced.png"] = png_bytes(scene(rng, 70, 101), 8, 2, interlaced=True)
    files["one_bit.png"] = saved(photo(80, 99).convert("1"), format="png")
    for depth in (2, 4, 8):
        files[f"grey{depth}.png"] = png_bytes(rng.integers(0, 2**depth, (73, 91, 1)), depth, 0)
    files["palette16.png"] = saved(photo(81, 60).quantize(16), format="png")
    files["palette256.png"] = saved(photo(81, 60).quantize(256), format="png")
    deep = np.stack(
        [
            np.add.outer(np.arange(75) * (c + 1) * 300, np.arange(95) * 260) % 65536
            for c in range(3)
        ],
        -1,
    )
    files["rgb16.png"] = png_bytes(deep, 16, 2)
    files["grey16.png"] = png_bytes(deep[:, :, :1] % 400, 16, 0)
    files["grey16_bright.png"] = png_bytes(deep[:, :, :1], 16, 0)
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        files[f"photo_{name}.jpg"] = saved(
            photo(427, 640), format="jpeg", quality=85, subsampling=subsampling
        )
    files["progressive.jpg"] = saved(photo(200, 301), format="jpeg", quality=75, progressive=True)
    files["grey.jpg"] = saved(photo(211, 150).convert("L"), format="jpeg", quality=80)
    files["tiny.jpg"] = saved(photo(5, 7), format="jpeg", quality=80)
    files["cmyk.jpg"] = saved(photo(120, 161).convert("CMYK"), format="jpeg", quality=90)
    files["cmyk_progressive.jpg"] = saved(
        photo(120, 161).convert("CMYK"), format="jpeg", progressive=True
    )
    files["rgb_space.jpg"] = saved(photo(88, 121), format="jpeg", quality=90, keep_rgb=True)
    files["upright.jpg"] = saved(photo(99, 130), format="jpeg", exif=with_orientation(1))
    files["lossy.webp"] = saved(photo(150, 222), format="webp", quality=80)
    files["lossless.webp"] = saved(photo(77, 50), format="webp", lossless=True)
    return files


def transparent_pictures(rng):
    """name -> bytes: alpha channels and transparent colours."""
    alpha = Image.fromarray(scene(rng, 100, 130, 4))
    grey = rng.integers(0, 256, (66, 77, 1))
    palette = rng.integers(0, 256, 48, dtype=np.uint8).tobytes()
    deep = rng.integers(0, 65536, (61, 72, 4))
    return {
        "rgba.png": saved(alpha, format="png"),
        "grey_alpha.png": saved(alpha.convert("LA"), format="png"),
        "palette_alpha.png": png_bytes(
            grey % 16, 4, 3, [(b"PLTE", palette), (b"tRNS", bytes(range(0, 240, 16)))]
        ),
        "grey_key.png": png_bytes(grey, 8, 0, [(b"tRNS", struct.pack(">H", int(grey[3, 5, 0])))]),
        "rgba16.png": png_bytes(deep, 16, 6),
        "grey_alpha16.png": png_bytes(deep[:, :, :2], 16, 4),
        "lossy_alpha.webp": saved(alpha, format="webp", quality=80),
        "lossless_alpha.webp": saved(alpha, format="webp", lossless=True, exact=True),
    }


def turned_pictures(rng):
    """name -> bytes: photos that EXIF turns."""
    photo = Image.fromarray(scene(rng, 64, 96))
    return {
        f"exif{k}.jpg": saved(photo, format="jpeg", exif=with_orientation(k)) for k in range(2, 9)
    }


def refused_pictures(rng):
    """name -> (bytes, words of the error)."""
    return {
        "thin.png": (saved(Image.fromarray(scene(rng, 1, 201)), format="png"), "too long and thin")
    }


def make_processors(out):
    """(model, backend) -> processor; writes the directory of each model as save_pretrained does."""
    model = json.loads(Tokenizer.from_file(str(TOKENIZER)).to_str())["model"]
    tokenizer = Qwen2Tokenizer(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]])
    tokenizer.add_tokens(
        ["<|vision_start|>", "<|vision_end|>", PAD, "<|video_pad|>"], special_tokens=True
    )
    stand_in = None if HAS_TORCHVISION else torchvision_processor()
    processors = {}
    for name, constants in MODELS.items():
        settings, directory = (
            dict(constants, size={"shortest_edge": LEAST, "longest_edge": MOST}),
            out / name,
        )
        directory.mkdir()
        if HAS_TORCHVISION:
            from transformers import (
                AutoProcessor,
                Qwen2_5_VLProcessor,
                Qwen2VLImageProcessor,
                Qwen3VLProcessor,
            )
            from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor
            from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

            kind, video = (
                (Qwen3VLProcessor, Qwen3VLVideoProcessor)
                if name == "qwen3"
                else (Qwen2_5_VLProcessor, Qwen2VLVideoProcessor)
            )
            kind(Qwen2VLImageProcessor(**settings), tokenizer, video()).save_pretrained(directory)
            processors[name, "torchvision"] = AutoProcessor.from_pretrained(directory)
        else:
            processor = stand_in(**settings)
            processor.save_pretrained(directory)
            processors[name, "torchvision"] = processor
        processors[name, "pil"] = AutoImageProcessor.from_pretrained(directory, backend="pil")
    print("torchvision", "real" if HAS_TORCHVISION else "stood in for")
    return processors


def answer_of(processor, picture):
    """Pixel values, grid and number of image tokens of a prompt with one picture."""
    if not hasattr(processor, "tokenizer"):
        answer = processor(images=[picture], return_tensors="np")
        grid = [int(n) for n in answer["image_grid_thw"][0]]
        return (
            np.asarray(answer["pixel_values"]),
            grid,
            grid[1] * grid[2] // processor.merge_size**2,
        )
    answer = processor(
        text=[f"<|vision_start|>{PAD}<|vision_end|>"], images=[picture], return_tensors="pt"
    )
    tokens = int((answer["input_ids"] == processor.tokenizer.convert_tokens_to_ids(PAD)).sum())
    return answer["pixel_values"].numpy(), answer["image_grid_thw"][0].tolist(), tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--pictures", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(18)
    processors = {} if args.pictures else make_processors(args.out)
    rows = []
    for name, content in (
        opaque_pictures(rng) | transparent_pictures(rng) | turned_pictures(rng)
    ).items():
        (args.out / name).write_bytes(content)
        if args.pictures:
            rows.append({"file": name})
        for (model, backend), processor in processors.items():
            values, grid, tokens = answer_of(
                processor, ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
            )
            values.astype("<f4").tofile(args.out / f"{name}.{model}.{backend}.f32")
            rows.append(
                {"file": name, "model": model, "backend": backend, "grid": grid, "tokens": tokens}
            )
    for name, (content, words) in refused_pictures(rng).items():
        (args.out / name).write_bytes(content)
        rows.append({"file": name, "refused": words})
    (args.out / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
