"""Draws what checkpoints answer beside the truth: draw_answers.py OUT.png NAME=rollouts.jsonl … [--rows N]

One row an image: the truth (green), then a column for each file that `rematch rollout` wrote on the same data. Matched predictions are blue,
false positives red; labels stand at the boxes, a wrong label of a matched prediction in red. Evenly spaced samples, not chosen by score.
"""

import argparse
import json
from pathlib import Path

from PIL import Image, ImageDraw

SCALE, PAD, HEAD = 2, 8, 18
GREEN, BLUE, RED = (0, 130, 40), (20, 60, 220), (210, 0, 0)


def corners(entry, size):
    """Outline of an object in pixels of the enlarged image."""
    bins = entry.get("poly") or entry["bbox_2d"]
    if "bbox_2d" in entry:
        x0, y0, x1, y1 = bins
        bins = [x0, y0, x1, y0, x1, y1, x0, y1]
    return [(x * size[0] / 1000, y * size[1] / 1000) for x, y in zip(bins[::2], bins[1::2])]


def panel(record, entries):
    """The record's image with (object, colour of the outline, colour of the label) drawn in."""
    image = Image.open(record["images"][0]).convert("RGB")
    image = image.resize((SCALE * image.width, SCALE * image.height), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(image)
    for entry, colour, label_colour in entries:
        points = corners(entry, image.size)
        draw.line(points + points[:1], fill=colour, width=2)
        x, y = min(point[0] for point in points), min(point[1] for point in points)
        place = (max(0, min(x, image.width - 6 * len(entry["desc"]))), max(0, y - 11))
        draw.rectangle(draw.textbbox(place, entry["desc"]), fill=(255, 255, 255))
        draw.text(place, entry["desc"], fill=label_colour)
    return image


def truth_entries(record):
    return [(entry, GREEN, GREEN) for entry in record["ground_truth"]]


def answer_entries(record):
    pairs = dict(record["pairs"])
    entries = []
    for index, entry in enumerate(record["predictions"]):
        matched = index in pairs
        right = matched and record["ground_truth"][pairs[index]]["desc"] == entry["desc"]
        entries.append((entry, BLUE if matched else RED, BLUE if right else RED))
    return entries


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("columns", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--rows", type=int, default=4)
    args = parser.parse_args()
    names, answers = [], []
    for column in args.columns:
        name, _, path = column.partition("=")
        names.append(name)
        answers.append([json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()])
    num_samples = min(len(records) for records in answers)
    chosen = [row * num_samples // args.rows for row in range(min(args.rows, num_samples))]
    rows = [[panel(answers[0][i], truth_entries(answers[0][i]))] + [panel(records[i], answer_entries(records[i])) for records in answers]
            for i in chosen]
    width, height = (max(image.size[axis] for row in rows for image in row) + PAD for axis in (0, 1))
    sheet = Image.new("RGB", (width * len(rows[0]) + PAD, height * len(rows) + HEAD + PAD), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    for x, name in enumerate(["truth", *names]):
        draw.text((PAD + x * width, 4), name, fill=(0, 0, 0))
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            sheet.paste(image, (PAD + x * width, HEAD + y * height))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(args.out)
    print(f"{args.out}: {len(rows)} of {num_samples} images")


if __name__ == "__main__":
    main()
