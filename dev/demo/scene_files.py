"""What the generators of dev/demo and tests/shapes share: bins, the files of a data set, the
preview and the command line.
"""

import argparse
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw


@dataclass
class Scene:
    image: Image.Image
    objects: list = field(default_factory=list)


def to_bin(value_px, side_px):
    return min(999, int(1000 * value_px / side_px + 0.5))


def write_part(out, part, count, split, seed, make):
    """PART.jsonl and its images; make(rng, split, part) gives a Scene."""
    (out / part).mkdir(parents=True, exist_ok=True)
    with open(out / f"{part}.jsonl", "w", encoding="utf-8") as lines:
        for index in range(count):
            scene = make(random.Random(f"{split}/{part}/{seed}/{index}"), split, part)
            name = f"{part}/{index:05d}.png"
            scene.image.save(out / name, compress_level=1)
            width, height = scene.image.size
            lines.write(
                json.dumps(
                    {"images": [name], "width": width, "height": height, "objects": scene.objects}
                )
                + "\n"
            )


def write_preview(out):
    """A contact sheet of the first twelve scenes, twice as large, with the records' objects drawn
    over the pixels.
    """
    lines = [
        line
        for part in ("train", "val")
        for line in (out / f"{part}.jsonl").read_text().splitlines()[:12]
    ][:12]
    cell = 340
    sheet = Image.new("RGB", (4 * cell, -(-max(len(lines), 1) // 4) * cell), (255, 255, 255))
    for index, line in enumerate(lines):
        record = json.loads(line)
        image = Image.open(out / record["images"][0])
        image = image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST)
        draw = ImageDraw.Draw(image)
        scale = (image.width / 1000, image.height / 1000)
        for entry in record["objects"]:
            box = entry.get("bbox_2d")
            points = entry.get("poly") or [
                [box[0], box[1]],
                [box[2], box[1]],
                [box[2], box[3]],
                [box[0], box[3]],
            ]
            points = [(x * scale[0], y * scale[1]) for x, y in points]
            draw.line(points + points[:1], fill=(230, 120, 0), width=1)
            draw.text(points[0], entry["desc"], fill=(200, 0, 120))
        sheet.paste(image, ((index % 4) * cell + 10, index // 4 * cell + 10))
    sheet.save(out / "preview.png")


def run_generator(doc, version, splits, stamp_name, make):
    """The command line of a generator. A second call with the same arguments returns at once; the
    stamp is written last.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--split", choices=sorted(splits), required=True)
    parser.add_argument("--num-train", type=int, default=2000)
    parser.add_argument("--num-val", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wanted = {
        "generator_version": version,
        "split": args.split,
        "num_train": args.num_train,
        "num_val": args.num_val,
        "seed": args.seed,
    }
    stamp = args.out / stamp_name
    if stamp.exists() and json.loads(stamp.read_text()) == wanted:
        print(f"{args.out}: already exists")
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for part, count in (("train", args.num_train), ("val", args.num_val)):
        write_part(args.out, part, count, args.split, args.seed, make)
    write_preview(args.out)
    stamp.write_text(json.dumps(wanted, indent=2) + "\n")
    print(
        f"{args.out}: {args.num_train} training and {args.num_val} validation images "
        f"({args.split}); see {args.out}/preview.png"
    )
    return 0
