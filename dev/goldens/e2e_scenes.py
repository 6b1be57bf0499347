#!/usr/bin/env python3
"""Makes tests/golden/e2e: eight small scenes with JSONL, and recorded answers to them as a model in
training would write them.

usage: .venv/bin/python dev/goldens/e2e_scenes.py      (needs pillow; deterministic)
"""

import json
import pathlib
import random

from PIL import Image, ImageDraw

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "e2e"
SIZES = [(64, 64), (96, 64), (64, 96)]
COLOURS = {"red": (220, 40, 40), "blue": (45, 85, 225), "green": (40, 160, 60)}


def to_bin(value, side):
    return min(999, int(1000 * value / side + 0.5))


def scene(rng, size, num_objects):
    image = Image.new("RGB", size, rng.choice([(235, 235, 230), (40, 40, 50)]))
    draw = ImageDraw.Draw(image)
    objects = []
    for _ in range(num_objects):
        colour = rng.choice(list(COLOURS))
        w, h = rng.randint(12, 28), rng.randint(12, 28)
        x, y = rng.randint(0, size[0] - w), rng.randint(0, size[1] - h)
        if rng.random() < 0.3:
            points = [(x, y), (x + w, y), (x + w // 2, y + h)]
            draw.polygon(points, fill=COLOURS[colour])
            flat = [to_bin(v, size[i % 2]) for point in points for i, v in enumerate(point)]
            objects.append({"desc": f"{colour} triangle", "poly": flat})
        else:
            draw.rectangle((x, y, x + w - 1, y + h - 1), fill=COLOURS[colour])
            objects.append(
                {
                    "desc": f"{colour} box",
                    "bbox_2d": [
                        to_bin(x, size[0]),
                        to_bin(y, size[1]),
                        to_bin(x + w, size[0]),
                        to_bin(y + h, size[1]),
                    ],
                }
            )
    return image, objects


def coord(k):
    return f"<|coord_{k}|>"


def answer_text(objects):
    members = []
    for n, thing in enumerate(objects, 1):
        if "poly" in thing:
            flat = thing["poly"]
            where = {
                "desc": thing["desc"],
                "poly": [[coord(flat[i]), coord(flat[i + 1])] for i in range(0, len(flat), 2)],
            }
        else:
            where = {"desc": thing["desc"], "bbox_2d": [coord(k) for k in thing["bbox_2d"]]}
        members.append((f"object_{n}", where))
    return json.dumps(dict(members), ensure_ascii=False)


def recorded(rng, objects, kind):
    jittered = []
    for thing in objects:
        key = "poly" if "poly" in thing else "bbox_2d"
        jittered.append(
            {
                "desc": thing["desc"],
                key: [max(0, min(999, v + rng.randint(-25, 25))) for v in thing[key]],
            }
        )
    if kind == "misses one":
        jittered = jittered[1:]
    if kind == "invents one":
        jittered.append({"desc": "ghost", "bbox_2d": [5, 5, 60, 60]})
    text = answer_text(jittered)
    if kind == "truncated":
        text = text[: max(1, int(len(text) * 0.7))]
        text = text[: text.rfind('"') + 1] or "{"
    if kind == "malformed":
        text = text.replace("}}", "},,}", 1)
    return text


def main():
    rng = random.Random(20)
    kinds = [
        "jittered",
        "misses one",
        "invents one",
        "truncated",
        "jittered",
        "malformed",
        "misses one",
        "jittered",
    ]
    (OUT / "images").mkdir(parents=True, exist_ok=True)
    records, answers = [], []
    for index, kind in enumerate(kinds):
        image, objects = scene(
            rng, SIZES[index % len(SIZES)], 0 if index == 4 else rng.randint(1, 3)
        )
        image.save(OUT / "images" / f"{index}.png", optimize=True)
        records.append(
            {
                "images": [f"images/{index}.png"],
                "width": image.width,
                "height": image.height,
                "objects": objects,
            }
        )
        answers.append({"sample_id": index, "kind": kind, "text": recorded(rng, objects, kind)})
    for name, lines in (
        ("train.jsonl", records),
        ("val.jsonl", records[:4]),
        ("rollouts.jsonl", answers),
    ):
        (OUT / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (OUT / "README.how").write_text(
        "Made by: .venv/bin/python dev/goldens/e2e_scenes.py (pillow). frozen_losses.json: "
        "printed by the test\n"
        "RolloutMatching.TenLossesAreFrozen when it fails; replace it only with a reason in the "
        "commit message.\n"
    )


main()
