"""Writes small image files and what Pillow and transformers make of them.

Usage: vision_images.py OUT_DIR [--seed N]
OUT_DIR gets the images, NAME.rgb (height x width x 3 bytes after transformers' convert_to_rgb),
manifest.jsonl, and pixel_*.f32:
pixel values of transformers' torchvision image processor. torchvision itself is not needed: its two
functions
in use are stood in for below.
"""

import argparse
import io
import json
import pathlib
import struct
import sys
import types
import zlib

import numpy as np
from PIL import Image, ImageOps
from transformers.image_transforms import convert_to_rgb

TURNED = "turned"


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_row(samples, depth):
    if depth == 8:
        return samples.astype(np.uint8).tobytes()
    if depth == 16:
        return b"".join(struct.pack(">H", int(s)) for s in samples)
    bits = "".join(format(int(s), f"0{depth}b") for s in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def png_bytes(samples, depth, color_type, extra=(), interlaced=False):
    """samples: [height, width, channels] integers as they are to be stored."""
    height, width, _ = samples.shape
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [
            (0, 0, 8, 8),
            (0, 4, 8, 8),
            (4, 0, 8, 4),
            (0, 2, 4, 4),
            (2, 0, 4, 2),
            (0, 1, 2, 2),
            (1, 0, 2, 1),
        ]
    data = b""
    for y0, x0, dy, dx in passes:
        for row in samples[y0::dy, x0::dx]:
            if row.size:
                data += b"\0" + pack_row(row.reshape(-1), depth)
    head = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    out = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head)
    for kind, content in extra:
        out += png_chunk(kind, content)
    return out + png_chunk(b"IDAT", zlib.compress(data)) + png_chunk(b"IEND", b"")


def scene(rng, height, width, channels=3):
    """Something between a photograph and a drawing: gradients, edges and noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        plane = (
            127
            + 90 * np.sin(x / (3 + c) + c) * np.cos(y / (5 - c % 3))
            + rng.normal(0, 12, (height, width))
        )
        plane[height // 4 : height // 2, width // 4 : width // 2] = 255 * (c % 2)
        planes.append(plane)
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def saved(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def good_images(rng):
    """name -> bytes of every kind that is read."""
    height, width = 14, 18
    files = {}
    for depth in (1, 2, 4, 8):
        grey = rng.integers(0, 2**depth, (height, width, 1))
        files[f"png_grey{depth}.png"] = png_bytes(grey, depth, 0)
        palette = rng.integers(0, 256, 3 * 2**depth, dtype=np.uint8).tobytes()
        alphas = rng.integers(0, 256, 2**depth - 1, dtype=np.uint8).tobytes()
        files[f"png_palette{depth}.png"] = png_bytes(grey, depth, 3, [(b"PLTE", palette)])
        files[f"png_palette{depth}_alpha.png"] = png_bytes(
            grey, depth, 3, [(b"PLTE", palette), (b"tRNS", alphas)]
        )
        files[f"png_grey{depth}_key.png"] = png_bytes(
            grey, depth, 0, [(b"tRNS", struct.pack(">H", int(grey[3, 5, 0])))]
        )
    files["png_palette_short.png"] = png_bytes(
        rng.integers(0, 9, (height, width, 1)), 8, 3, [(b"PLTE", bytes(range(15)))]
    )
    rgb = scene(rng, height, width)
    files["png_rgb.png"] = png_bytes(rgb, 8, 2)
    files["png_rgb_interlaced.png"] = png_bytes(rgb, 8, 2, interlaced=True)
    files["png_grey2_interlaced.png"] = png_bytes(
        rng.integers(0, 4, (13, 9, 1)), 2, 0, interlaced=True
    )
    files["png_rgb_key.png"] = png_bytes(
        rgb, 8, 2, [(b"tRNS", struct.pack(">HHH", *[int(v) for v in rgb[2, 3]]))]
    )
    files["png_la.png"] = png_bytes(rng.integers(0, 256, (height, width, 2)), 8, 4)
    files["png_rgba.png"] = png_bytes(rng.integers(0, 256, (height, width, 4)), 8, 6)
    every_pair = np.stack(
        np.broadcast_arrays(np.arange(0, 256)[:, None], np.arange(0, 256, 15)[None, :]), -1
    )
    files["png_la_pairs.png"] = png_bytes(every_pair, 8, 4)
    upright = Image.Exif()
    upright[0x0112] = 1
    files["png_upright.png"] = saved(Image.fromarray(rgb), format="png", exif=upright)
    # bytes of one tone compress well; JPEG and WebP need structure
    photo = Image.fromarray(scene(rng, 35, 45))
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        files[f"jpeg_{name}.jpg"] = saved(photo, format="jpeg", quality=85, subsampling=subsampling)
    files["jpeg_progressive.jpg"] = saved(photo, format="jpeg", quality=70, progressive=True)
    files["jpeg_grey.jpg"] = saved(photo.convert("L"), format="jpeg", quality=80)
    files["jpeg_rgb_space.jpg"] = saved(photo, format="jpeg", quality=90, keep_rgb=True)
    files["jpeg_restart.jpg"] = saved(photo, format="jpeg", quality=60, restart_marker_blocks=2)
    files["jpeg_upright.jpg"] = saved(photo, format="jpeg", exif=upright)
    files["webp_lossy.webp"] = saved(photo, format="webp", quality=80)
    files["webp_lossless.webp"] = saved(photo, format="webp", lossless=True)
    transparent = Image.fromarray(scene(rng, 35, 45, 4))
    files["webp_lossy_alpha.webp"] = saved(transparent, format="webp", quality=80)
    files["webp_lossless_alpha.webp"] = saved(transparent, format="webp", lossless=True, exact=True)
    return files


def deep_and_inked_images(rng):
    """name -> bytes: 16-bit samples and CMYK, which Pillow reduces to 8-bit RGB."""
    samples = rng.integers(0, 65536, (4, 4, 3))
    low = samples % 512  # grey is cut at 255
    low[0, 0] = 44
    photo = Image.fromarray(scene(np.random.default_rng(int(samples[0, 0, 0])), 35, 45)).convert(
        "CMYK"
    )
    return {
        "rgb16.png": png_bytes(samples, 16, 2),
        "rgb16_key.png": png_bytes(
            samples, 16, 2, [(b"tRNS", struct.pack(">HHH", *[int(v) >> 8 for v in samples[1, 2]]))]
        ),
        "grey16.png": png_bytes(low[:, :, :1], 16, 0),
        "grey16_interlaced.png": png_bytes(low[:, :, :1], 16, 0, interlaced=True),
        "grey16_key.png": png_bytes(low[:, :, :1], 16, 0, [(b"tRNS", struct.pack(">H", 300))]),
        "la16.png": png_bytes(samples[:, :, :2], 16, 4),
        "rgba16.png": png_bytes(samples[:, :, [0, 1, 2, 0]], 16, 6),
        "cmyk.jpg": saved(photo, format="jpeg", quality=90),
        "cmyk_progressive.jpg": saved(photo, format="jpeg", quality=60, progressive=True),
    }


def other_images(rng):
    """name -> (bytes, words of the error; TURNED: no error, but a picture that EXIF turns)."""
    picture = Image.fromarray(scene(rng, 16, 16))
    rotated = Image.Exif()
    rotated[0x0112] = 6
    jpeg = saved(picture, format="jpeg")
    progressive = saved(picture, format="jpeg", progressive=True)
    png = saved(picture, format="png")
    webp = saved(picture, format="webp")
    frames = dict(save_all=True, append_images=[picture.rotate(90)], duration=10)
    flipped = bytearray(png)
    flipped[len(png) // 2] ^= 0x55
    bomb = png_bytes(np.zeros((1, 1, 1), int), 8, 0).replace(
        struct.pack(">II", 1, 1), struct.pack(">II", 60000, 60000), 1
    )
    return {
        "rotated.jpg": (saved(picture, format="jpeg", exif=rotated), TURNED),
        "rotated.png": (saved(picture, format="png", exif=rotated), TURNED),
        "rotated.webp": (saved(picture, format="webp", exif=rotated), TURNED),
        "animated.png": (saved(picture, format="png", **frames), "animated"),
        "animated.webp": (saved(picture, format="webp", **frames), "animated"),
        "cut.jpg": (jpeg[: len(jpeg) * 3 // 4], "corrupt"),
        "cut_progressive.jpg": (progressive[: len(progressive) * 2 // 3], "corrupt"),
        "no_end.jpg": (jpeg[:-2], "corrupt"),
        "cut.png": (png[: len(png) // 2], "corrupt"),
        "no_end.png": (png[:-12], "corrupt"),
        "flipped.png": (bytes(flipped), "corrupt"),
        "cut.webp": (webp[: len(webp) // 2], "corrupt"),
        "head_only.jpg": (jpeg[:3], "corrupt"),
        "head_only.png": (png[:8], "corrupt"),
        "head_only.webp": (webp[:12], "corrupt"),
        "bomb.png": (bomb, "too large"),
        "picture.gif": (saved(picture.convert("P"), format="gif"), "not a JPEG"),
        "empty.png": (b"", "not a JPEG"),
    }


def torchvision_processor():
    """transformers' torchvision-backed class, with stand-ins for the functions of torchvision that
    it calls here.
    """
    import torch

    def normalize(image, mean, std, inplace=False):
        mean, std = (torch.as_tensor(v, dtype=image.dtype).view(-1, 1, 1) for v in (mean, std))
        return (image.sub_(mean) if inplace else image.sub(mean)).div_(std)

    def resize(image, size, interpolation=None, antialias=True):
        assert image.dtype == torch.uint8 and antialias
        return torch.nn.functional.interpolate(
            image, size=list(size), mode="bicubic", antialias=True
        )

    functional = types.ModuleType("functional")
    functional.normalize, functional.resize = normalize, resize
    functional.InterpolationMode = types.SimpleNamespace(
        BILINEAR="bilinear", BICUBIC="bicubic", LANCZOS="lanczos"
    )
    for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.v2"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torchvision.transforms.v2"].functional = functional
    from transformers.utils import import_utils

    import_utils.BACKENDS_MAPPING["torchvision"] = (lambda: True, "")
    from transformers import image_processing_backends as backends

    backends.tvF = functional
    backends.pil_torch_interpolation_mapping = {Image.Resampling.BICUBIC: "bicubic"}
    from transformers.models.qwen2_vl import image_processing_qwen2_vl

    return image_processing_qwen2_vl.Qwen2VLImageProcessor


def write_pixel_values(out, rng):
    """pixel_qwen3.f32 and pixel_clip.f32: two sets of constants; resized.f32: a picture that had to
    be resized.

    NAME.pil.f32: the same by the image processor that does without torchvision."""
    processor = torchvision_processor()
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    qwen3 = dict(
        patch_size=16,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        size={"shortest_edge": 1024, "longest_edge": 16777216},
    )
    cases = [
        ("pixel_qwen3", (32, 32), dict(do_resize=False, **qwen3)),
        ("pixel_clip", (28, 28), dict(do_resize=False)),
        ("resized", (37, 45), qwen3),
    ]
    for name, (height, width), options in cases:
        picture = Image.fromarray(scene(rng, height, width))
        (out / f"{name}.png").write_bytes(saved(picture, format="png"))
        Qwen2VLImageProcessorPil(**options)(images=[picture], return_tensors="np")[
            "pixel_values"
        ].astype("<f4").tofile(out / f"{name}.pil.f32")
        answer = processor(**options)(images=[picture], return_tensors="pt")
        values = answer["pixel_values"].numpy()
        values.astype("<f4").tofile(out / f"{name}.f32")
        print(name, answer["image_grid_thw"].tolist(), values.shape)


def write_pixels(out, name, content):
    """The row of a picture; writes its pixels, turned as viewers show them."""
    picture = Image.open(io.BytesIO(content))
    picture.load()
    rgb = convert_to_rgb(ImageOps.exif_transpose(picture), return_numpy=True)
    (out / f"{name}.rgb").write_bytes(rgb.tobytes())
    return {"file": name, "width": rgb.shape[1], "height": rgb.shape[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(args.seed)
    rows = []
    good, refused = good_images(rng), other_images(rng)
    for name, content in (good | deep_and_inked_images(rng)).items():
        (args.out / name).write_bytes(content)
        rows.append(write_pixels(args.out, name, content))
    for name, (content, words) in refused.items():
        (args.out / name).write_bytes(content)
        rows.append(
            write_pixels(args.out, name, content)
            if words == TURNED
            else {"file": name, "refused": words}
        )
    (args.out / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_pixel_values(args.out, rng)


if __name__ == "__main__":
    main()
