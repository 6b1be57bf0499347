"""Writes awkward pictures and what transformers' two image processors make of them.

Usage: vision_resize.py OUT_DIR [--seed N] [--large]
OUT_DIR gets the pictures and manifest.jsonl: {"file", "model", "grid"} or {"file", "model",
"refused"}. For each picture and backend
NAME.BACKEND.rgb holds height x width x 3 bytes after resizing; with --large, NAME.BACKEND.f32 the
pixel values instead, and the
pictures and limits are of real size. MODEL/preprocessor_config.json are the two families'
constants; `pil` is what AutoImageProcessor
gives where torchvision is missing, `torchvision` its first choice, here with stand-ins
(vision_images.py).
"""

import argparse
import io
import json
import pathlib

import numpy as np
import torch
from PIL import Image
from transformers import AutoImageProcessor
from transformers.image_transforms import convert_to_rgb
from vision_images import saved, scene, torchvision_processor

HALF, CLIP = [0.5] * 3, ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
MODELS = {
    "qwen3": dict(patch_size=16, image_mean=HALF, image_std=HALF),
    "qwen25": dict(patch_size=14, image_mean=CLIP[0], image_std=CLIP[1]),
}
LIMITS = {False: (1024, 4096), True: (65536, 1 << 17)}


def checker(height, width):
    """Edges everywhere: the filter overshoots black and white."""
    y, x = np.mgrid[0:height, 0:width]
    return np.repeat(((x // 3 + y // 2) % 2 * 255).astype(np.uint8)[..., None], 3, -1)


def pictures(rng, large):
    """name -> bytes."""
    sizes = [
        (1, 1),
        (1, 7),
        (7, 1),
        (200, 1),
        (1, 200),
        (201, 1),
        (1, 403),
        (50, 150),
        (150, 50),
        (107, 160),
        (64, 64),
        (32, 96),
        (20, 20),
        (31, 33),
        (48, 80),
        (16, 16),
        (63, 65),
        (150, 200),
        (2, 3),
        (37, 45),
        (90, 40),
        (61, 14),
    ]
    if large:
        sizes = [
            (427, 640),
            (640, 427),
            (1, 1),
            (3, 500),
            (300, 900),
            (900, 301),
            (100, 100),
            (1500, 1100),
            (256, 256),
            (1024, 1024),
            (255, 257),
            (60, 1201),
            (800, 5),
            (48, 80),
            (1023, 1026),
            (13, 2600),
            (13, 2601),
        ]
    files = {
        f"{height}x{width}.png": Image.fromarray(scene(rng, height, width))
        for height, width in sizes
    }
    height, width = (333, 500) if large else (33, 50)
    files["checker.png"] = Image.fromarray(checker(height, width))
    files["checker_small.png"] = Image.fromarray(checker(11, 17))
    files["noise.png"] = Image.fromarray(
        rng.integers(0, 256, (height * 3, width * 2, 3), dtype=np.uint8)
    )
    files["grey.png"] = Image.fromarray(scene(rng, height, width)).convert("L")
    files["one_bit.png"] = Image.fromarray(scene(rng, height, width)).convert("1")
    files["palette.png"] = Image.fromarray(scene(rng, height, width)).quantize(16)
    files["grey_alpha.png"] = Image.fromarray(scene(rng, height, width, 4)).convert("LA")
    files["alpha.png"] = Image.fromarray(scene(rng, height, width, 4))
    files = {name: saved(picture, format="png") for name, picture in files.items()}
    files["alpha.webp"] = saved(
        Image.fromarray(scene(rng, height, width, 4)), format="webp", lossless=True, exact=True
    )
    files["lossless.webp"] = saved(
        Image.fromarray(scene(rng, height, width)), format="webp", lossless=True
    )
    return files


def resized(backend, processor, rgb):
    """height x width x 3 bytes; `rgb` when the processor keeps the size."""
    size = processor._standardize_kwargs(size=processor.size)["size"]
    planes = np.ascontiguousarray(rgb.transpose(2, 0, 1))
    options = dict(
        size=size, resample=processor.resample, factor=processor.patch_size * processor.merge_size
    )
    if backend == "pil":
        return processor.resize(planes, **options).transpose(1, 2, 0)
    return processor.resize(torch.from_numpy(planes)[None], **options)[0].permute(1, 2, 0).numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    torchvision = torchvision_processor()
    processors = {}
    for model, constants in MODELS.items():
        least, most = LIMITS[args.large]
        settings = dict(constants, size={"shortest_edge": least, "longest_edge": most})
        directory = args.out / model
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "preprocessor_config.json").write_text(
            json.dumps(dict(settings, image_processor_type="Qwen2VLImageProcessor"), indent=2)
            + "\n"
        )
        processors[model, "pil"] = AutoImageProcessor.from_pretrained(directory, backend="pil")
        processors[model, "torchvision"] = torchvision(**settings)

    rows = []
    for name, content in pictures(np.random.default_rng(args.seed), args.large).items():
        (args.out / name).write_bytes(content)
        picture = Image.open(io.BytesIO(content))
        for (model, backend), processor in processors.items():
            if model != "qwen3" and len(rows) % 3:
                continue
            row = {"file": name, "model": model, "backend": backend}
            try:
                answer = processor(images=[picture], return_tensors="np")
                row["grid"] = answer["image_grid_thw"][0].tolist()
                target = args.out / f"{name}.{model}.{backend}"
                if args.large:
                    np.asarray(answer["pixel_values"]).astype("<f4").tofile(f"{target}.f32")
                else:
                    resized(backend, processor, convert_to_rgb(picture, return_numpy=True)).tofile(
                        f"{target}.rgb"
                    )
            except ValueError as error:
                assert "aspect ratio" in str(error), error
                row["refused"] = True
            rows.append(row)
    (args.out / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
