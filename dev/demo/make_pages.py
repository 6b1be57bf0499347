"""Makes pages of handwritten digits with exact boxes and polygons: the data set of the
demonstration.

    make_pages.py OUT --split easy|crowded --num-train N --num-val M --seed S

writes OUT/train.jsonl, OUT/val.jsonl, the PNG files they name, OUT/preview.png (twelve pages with
their geometry drawn in)
and, last, OUT/pages.json (the arguments; a second call with the same ones returns at once).

easy     one to four large digits: what the demonstration's checkpoint is taught on.
crowded  five to eight smaller ones, closer together, many like a neighbour, more slanted and paler.

The digits are the 1,797 scans of 8x8 pixels in scikit-learn's wheel (UCI "Optical Recognition of
Handwritten Digits", E. Alpaydin and C. Kaynak, CC BY 4.0);
scripts/setup takes that one file out of the wheel. Validation pages use the last 360 scans,
training pages the others: no scan is in both.
`desc` is "zero" to "nine" with `bbox_2d`, or "triangle" with `poly`: a mark of three strokes that
is drawn by hand next to the digits.
Objects stand in the order in which an annotator drew them, which nothing in the picture tells.

Coordinates are bins: bin(x) = min(999, floor(1000 * x / side + 1/2)), x a continuous image
coordinate (pixel i covers [i, i+1]),
so a box spans the outer edges of its pixels and a vertex lies in the middle of its pixel.
Every page has its own generator seeded by (split, part, seed, index): files do not depend on how
many are made.
"""

import functools
import gzip
import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw
from scene_files import Scene, run_generator, to_bin

GENERATOR_VERSION = 1
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MARK = "triangle"
NUM_VAL_SCANS = 360
INKS = ((25, 25, 35), (30, 55, 160), (150, 30, 40), (25, 95, 60), (95, 45, 130))
PAPERS = ((250, 249, 244), (244, 238, 222), (234, 241, 248))


@dataclass(frozen=True)
class Difficulty:
    page_sizes: tuple  # (width, height), drawn uniformly
    num_objects: tuple  # smallest, largest
    height_px: tuple  # smallest, largest height of a digit
    gap_px: int  # empty pixels kept between two boxes
    slant: float  # largest shear of a digit, as a share of its height
    paleness: float  # largest share of paper in the ink
    repeat: float  # chance that a digit is the same as the one before it


DIFFICULTIES = {
    "easy": Difficulty(((128, 128),), (1, 4), (36, 60), 3, 0.12, 0.15, 0.0),
    "crowded": Difficulty(((128, 128),), (5, 8), (26, 42), 1, 0.2, 0.25, 0.3),
}


def load_scans():
    """{part: {digit: [8x8 images]}} of the scans, by part and digit."""
    path = Path(sys.prefix) / "share" / "rematch" / "digits.csv.gz"
    if not path.exists():
        raise SystemExit(
            f"error: the scans of digits are missing\n  where: {path}\n  what:  no such file\n  "
            "fix:   run scripts/setup"
        )
    rows = [
        [int(float(cell)) for cell in line.split(",")]
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]
    parts = {"train": rows[:-NUM_VAL_SCANS], "val": rows[-NUM_VAL_SCANS:]}
    scans = {part: {digit: [] for digit in range(10)} for part in parts}
    for part, some in parts.items():
        for *levels, digit in some:
            scans[part][digit].append(
                Image.frombytes("L", (8, 8), bytes(min(255, 16 * level) for level in levels))
            )
    return scans


def boxes_meet(a, b, gap):
    """Whether two boxes (x0, y0, x1, y1), upper ends exclusive, are closer than `gap` pixels."""
    return a[0] - gap < b[2] and b[0] - gap < a[2] and a[1] - gap < b[3] and b[1] - gap < a[3]


def draw_paper(rng, size):
    """A plain, lined or squared sheet."""
    image = Image.new("RGB", size, rng.choice(PAPERS))
    draw = ImageDraw.Draw(image)
    kind, step, start = (
        rng.choice(("plain", "lined", "squared")),
        rng.randint(12, 20),
        rng.randint(0, 11),
    )
    line = rng.choice(((178, 200, 225), (215, 200, 190), (190, 215, 200)))
    if kind != "plain":
        for y in range(start, size[1], step):
            draw.line([(0, y), (size[0], y)], fill=line)
    if kind == "squared":
        for x in range(start, size[0], step):
            draw.line([(x, 0), (x, size[1])], fill=line)
    return image


def write_digit(rng, scan, height, slant):
    """The strokes of a scan as a mask that is cut to them: enlarged, stretched and slanted, with
    edges as sharp as a pen's.
    """
    width = round(height * rng.uniform(0.8, 1.1))
    shear = rng.uniform(-slant, slant)
    margin = round(abs(shear) * height) + 2
    mask = Image.new("L", (width + 2 * margin, height + 4))
    mask.paste(scan.resize((width, height), Image.Resampling.BICUBIC), (margin, 2))
    mask = mask.transform(
        mask.size,
        Image.Transform.AFFINE,
        (1, shear, -shear * mask.height / 2, 0, 1, 0),
        Image.Resampling.BICUBIC,
    )
    mask = mask.point(lambda level: max(0, min(255, (level - 85) * 4)))
    return mask.crop(mask.point(lambda level: 255 if level > 64 else 0).getbbox())


def free_place(rng, extent, size, gap, taken):
    """A box of that extent that keeps its distance from those taken, or None after 60 tries."""
    for _ in range(60):
        x0, y0 = rng.randint(1, size[0] - extent[0] - 1), rng.randint(1, size[1] - extent[1] - 1)
        box = (x0, y0, x0 + extent[0], y0 + extent[1])
        if not any(boxes_meet(box, other, gap) for other in taken):
            return box
    return None


def draw_mark(rng, image, box, ink):
    """Three strokes between three corners that touch all sides of the box. Returns the corner
    pixels.
    """
    x0, y0, x1, y1 = box[0], box[1], box[2] - 1, box[3] - 1
    apex = rng.randint(x0 + (x1 - x0) // 4, x1 - (x1 - x0) // 4)
    corners = (
        [(apex, y0), (x1, y1), (x0, y1)] if rng.random() < 0.5 else [(x0, y0), (x1, y0), (apex, y1)]
    )
    ImageDraw.Draw(image).line(corners + corners[:2], fill=ink, width=2, joint="curve")
    return corners


def make_page(rng, difficulty, scans):
    size = rng.choice(difficulty.page_sizes)
    page = Scene(draw_paper(rng, size))
    taken = []
    for _ in range(rng.randint(*difficulty.num_objects)):
        paper_share = rng.uniform(0, difficulty.paleness)
        ink = tuple(
            round((1 - paper_share) * level + paper_share * 245) for level in rng.choice(INKS)
        )
        height = rng.randint(*difficulty.height_px)
        if page.objects and page.objects[-1]["desc"] in NAMES and rng.random() < difficulty.repeat:
            name = page.objects[-1]["desc"]
        else:
            name = rng.choices(NAMES + (MARK,), (2,) * 10 + (3,))[0]
        if name == MARK:
            box = free_place(rng, (height, round(0.9 * height)), size, difficulty.gap_px, taken)
            if box is None:
                continue
            corners = draw_mark(rng, page.image, box, ink)
            geometry = {
                "poly": [[to_bin(x + 0.5, size[0]), to_bin(y + 0.5, size[1])] for x, y in corners]
            }
        else:
            mask = write_digit(rng, rng.choice(scans[NAMES.index(name)]), height, difficulty.slant)
            box = free_place(rng, mask.size, size, difficulty.gap_px, taken)
            if box is None:
                continue
            page.image.paste(Image.new("RGB", mask.size, ink), box[:2], mask)
            geometry = {
                "bbox_2d": [to_bin(value, size[axis % 2]) for axis, value in enumerate(box)]
            }
        taken.append(box)
        page.objects.append({"desc": name, **geometry})
    return page


def main():
    scans = functools.cache(load_scans)  # not read when the pages exist
    return run_generator(
        __doc__,
        GENERATOR_VERSION,
        DIFFICULTIES,
        "pages.json",
        lambda rng, split, part: make_page(rng, DIFFICULTIES[split], scans()[part]),
    )


if __name__ == "__main__":
    sys.exit(main())
