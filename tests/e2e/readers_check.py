#!/usr/bin/env python3
"""Every reader of annotations gives the same records for the same boxes, and none takes a size or a
unit that contradicts the file: one table of inputs, written in each form and imported.

usage: readers_check.py REMATCH [--every N]

--every N: each N-th row only (CI); without it all of them.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

SIZE = (200, 100)
# left, top, right, bottom in pixels of the file
BOXES = {
    "a.png": [("cat", (20, 10, 120, 60)), ("dog", (0, 0, 200, 100))],
    "b.png": [("cat", (150, 70, 190, 95)), ("dog", (4, 50, 30, 99))],
    "c.png": [("dog", (60, 20, 70, 30))],
}
NAMES = ["cat", "dog"]


def png(size, orientation=None):
    """A grey PNG; with an EXIF orientation if one is given."""
    chunks = [(b"IHDR", struct.pack(">2I5B", *size, 8, 0, 0, 0, 0))]
    if orientation:
        tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
        chunks.append((b"eXIf", tiff))
    rows = b"".join(b"\0" + bytes([90]) * size[0] for _ in range(size[1]))
    chunks += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def sides(size, text):
    """The sides as numbers or as texts; None is left out."""
    return [None if one is None else str(one) if text else one for one in size]


def fields(names, size, text):
    return {n: v for n, v in zip(names, sides(size, text), strict=True) if v is not None}


def coco(place, size, text, shift):
    images, annotations = [], []
    for index, (name, boxes) in enumerate(BOXES.items()):
        images.append({"id": index, "file_name": name, **fields(("width", "height"), size, text)})
        for label, (x1, y1, x2, y2) in boxes:
            box = [shift(one) for one in (x1, y1, x2 - x1, y2 - y1)]
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": index,
                    "category_id": NAMES.index(label),
                    "bbox": [str(one) for one in box] if text else box,
                }
            )
    names = [{"id": index, "name": name} for index, name in enumerate(NAMES)]
    document = {"images": images, "annotations": annotations, "categories": names}
    (place / "train.json").write_text(json.dumps(document))
    return ["from-coco", "train.json"]


def voc(place, size, text, shift):
    for name, boxes in BOXES.items():
        written = "".join(
            f"<object><name>{label}</name><bndbox>"
            + "".join(
                f"<{side}>{shift(value)}</{side}>"
                for side, value in zip(("xmin", "ymin", "xmax", "ymax"), box)
            )
            + "</bndbox></object>"
            for label, box in boxes
        )
        given = "".join(
            f"<{side}>{'' if value is None else value}</{side}>"
            for side, value in zip(("width", "height"), size)
        )
        (place / name).with_suffix(".xml").write_text(
            f"<annotation><filename>{name}</filename><size>{given}</size>{written}</annotation>"
        )
    return ["from-voc", "."]


def labelme(place, size, text, shift):
    for name, boxes in BOXES.items():
        shapes = [
            {
                "label": label,
                "shape_type": "rectangle",
                "points": [[shift(x1), shift(y1)], [shift(x2), shift(y2)]],
            }
            for label, (x1, y1, x2, y2) in boxes
        ]
        given = fields(("imageWidth", "imageHeight"), size, text)
        (place / name).with_suffix(".json").write_text(
            json.dumps({"imagePath": name, "shapes": shapes, **given})
        )
    return ["from-labelme", "."]


def csv(place, size, text, shift):
    rows = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for name, boxes in BOXES.items():
        for label, box in boxes:
            given = ["" if one is None else str(one) for one in size]
            rows.append(",".join([name, *given, label, *(str(shift(one)) for one in box)]))
    (place / "train.csv").write_text("\n".join(rows) + "\n")
    return ["from-csv", "train.csv"]


def hf(place, size, text, shift):
    lines = []
    for name, boxes in BOXES.items():
        objects = {
            "bbox": [
                [shift(x1), shift(y1), shift(x2 - x1), shift(y2 - y1)]
                for _, (x1, y1, x2, y2) in boxes
            ],
            "category": [label for label, _ in boxes],
        }
        lines.append(
            {"file_name": name, "objects": objects, **fields(("width", "height"), size, text)}
        )
    (place / "metadata.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return ["from-hf", "metadata.jsonl"]


def chat(place, size, text, shift):
    lines = []
    for name, boxes in BOXES.items():
        answer = [{"bbox_2d": [shift(one) for one in box], "label": label} for label, box in boxes]
        turns = [
            {"role": "user", "content": "<image>Locate every object."},
            {"role": "assistant", "content": json.dumps(answer)},
        ]
        lines.append(
            {"images": [name], "messages": turns, **fields(("width", "height"), size, text)}
        )
    (place / "train.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return ["from-qwen", "train.jsonl", "--scale", "file-pixels"]


def yolo(place, size, text, shift):
    """Shares of the sides; a YOLO set states no size."""
    for name, boxes in BOXES.items():
        lines = []
        for label, (x1, y1, x2, y2) in boxes:
            centre = ((x1 + x2) / 2 / SIZE[0], (y1 + y2) / 2 / SIZE[1])
            extent = ((x2 - x1) / SIZE[0], (y2 - y1) / SIZE[1])
            numbers = [shift(one) for one in (*centre, *extent)]
            lines.append(" ".join(map(str, [NAMES.index(label), *numbers])))
        (place / name).with_suffix(".txt").write_text("\n".join(lines) + "\n")
    (place / "classes.txt").write_text("\n".join(NAMES) + "\n")
    return ["from-yolo", "."]


READERS = [coco, voc, labelme, csv, hf, chat, yolo]
# What, the sides that are stated, as texts, EXIF orientation, change of the numbers, and whether
# the input is right; None: a side that says nothing may be ignored or refused.
same = lambda value: value  # noqa: E731
INPUTS = [
    ("as it is", SIZE, False, None, same, True),
    ("numbers as texts", SIZE, True, None, same, True),
    ("no sides", (None, None), False, None, same, True),
    ("width alone", (SIZE[0], None), False, None, same, True),
    ("height alone", (None, SIZE[1]), True, None, same, True),
    ("sides with a fraction", (200.0, 100.0), False, None, same, True),
    ("numbers with a fraction", SIZE, False, None, lambda value: value + 0.0, True),
    ("orientation 1", SIZE, False, 1, same, True),
    ("half the size", (100, 50), False, None, same, False),
    ("half the size as texts", (100, 50), True, None, same, False),
    ("half the width alone", (100, None), False, None, same, False),
    ("half the height alone", (None, 50), True, None, same, False),
    ("sides exchanged", (100, 200), False, None, same, False),
    ("a side of zero", (0, 100), False, None, same, None),
    ("a negative side", (-200, 100), False, None, same, None),
    ("a side that is not a number", ("wide", 100), True, None, same, None),
    ("stored turned", SIZE, False, 6, same, False),
    ("shares where pixels belong", SIZE, False, None, lambda value: value / 200, False),
    ("numbers of twice the size", SIZE, False, None, lambda value: value * 2, False),
    ("NaN", SIZE, False, None, lambda value: float("nan"), False),
]


def expected():
    records = {}
    for name, boxes in BOXES.items():
        records[name] = sorted((label, list(box)) for label, box in boxes)
    return records


def imported(place):
    """Boxes in pixels by image, sorted; the records have bins of a thousandth."""
    records = {}
    for path in sorted((place / "out").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            scale = [record["width"] / 1000, record["height"] / 1000] * 2
            records[Path(record["images"][0]).name] = sorted(
                (one["desc"], [value * factor for value, factor in zip(one["bbox_2d"], scale)])
                for one in record["objects"]
            )
    return records


def is_near(found, truth):
    return found.keys() == truth.keys() and all(
        len(found[name]) == len(truth[name])
        and all(
            label == wanted and all(abs(a - b) <= 0.5 for a, b in zip(box, truth_box))
            for (label, box), (wanted, truth_box) in zip(found[name], truth[name])
        )
        for name in truth
    )


def fault(rematch, reader, row):
    """What is wrong with a reader's result for an input; None if nothing is."""
    _, size, text, orientation, shift, is_right = row
    if reader is yolo and shift is not same:
        shift = {0.5: lambda one: one * 100, 200: lambda one: one * 3}.get(shift(100), shift)
    states_size = reader is not yolo or shift is not same
    with tempfile.TemporaryDirectory(prefix="readers_") as directory:
        place = Path(directory)
        for name in BOXES:
            (place / name).write_bytes(png(SIZE, orientation))
        command = reader(place, size, text, shift)
        done = subprocess.run(
            [rematch, "data", *command, "--images", ".", "--out", "out", "--strict"],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=60,
        )
        said = done.stderr.strip().splitlines()
        if done.returncode not in (0, 2, 3):
            return f"exit code {done.returncode}: {said[-3:]}"
        found = imported(place)
        if done.returncode == 0 and not is_near(found, expected()) and is_right is not False:
            return f"other boxes: {found}"
        if is_right and done.returncode != 0:
            return f"refused: {said[:4]}"
        if is_right is False and states_size and done.returncode == 0:
            return f"taken without a word: {found} {said}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rematch")
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    rematch = os.path.abspath(arguments.rematch)
    rows = [(reader, row) for row in INPUTS for reader in READERS][:: arguments.every]
    faults = []
    for reader, row in rows:
        text = fault(rematch, reader, row)
        if text:
            faults.append(f"{reader.__name__}, {row[0]}: {text}")
    print(f"{len(rows)} inputs, {len(faults)} faults")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
