"""Makes scenes of coloured shapes with exact boxes and polygons: the data set of tests that need a
trained checkpoint (model/).

    make_scenes.py OUT --split simple|hard --num-train N --num-val M --seed S

writes OUT/train.jsonl, OUT/val.jsonl, the PNG files they name, OUT/preview.png (twelve scenes with
their geometry drawn in)
and, last, OUT/scenes.json (the arguments; a second call with the same ones returns at once).

simple  one to five large shapes on a plain 128x128 background: what the checkpoint in model/ was
taught on.
hard    four to eight smaller shapes, many of them like a neighbour, on backgrounds with gradients,
noise and stray lines, also 160x128
        and 128x160 images: what a user's new data look like to that checkpoint.

Circles, squares and rectangles carry `bbox_2d`, triangles `poly`; `desc` is colour and shape.
Coordinates are bins: bin(x) = min(999, floor(1000 * x / side + 1/2)), x a continuous image
coordinate (pixel i covers [i, i+1]),
so a box spans the outer edges of its pixels and a vertex lies in the middle of its pixel.
Every scene has its own generator seeded by (split, part, seed, index): files do not depend on how
many are made.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "dev" / "demo"))
from scene_files import Scene, run_generator, to_bin  # noqa: E402

GENERATOR_VERSION = 3
COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 160, 60),
    "blue": (45, 85, 225),
    "yellow": (240, 215, 40),
    "purple": (150, 60, 190),
    "orange": (245, 140, 30),
}
BOX_SHAPES = ("circle", "square", "rectangle")
POLY_SHAPES = ("triangle",)
SHAPES = BOX_SHAPES + POLY_SHAPES
SHAPE_WEIGHTS = (2, 2, 1, 1)


@dataclass(frozen=True)
class Difficulty:
    image_sizes: tuple  # (width, height), drawn uniformly
    num_objects: tuple  # smallest, largest
    side_px: tuple  # smallest, largest extent of a shape
    margin_px: (
        int  # empty pixels kept between the boxes of two shapes; negative allows that much overlap
    )
    clutter: bool
    repeat: float  # chance that a shape has the colour and the kind of the one before it


DIFFICULTIES = {
    "simple": Difficulty(((128, 128),), (1, 5), (24, 54), 2, False, 0.0),
    "hard": Difficulty(
        ((128, 128), (128, 128), (160, 128), (128, 160)), (4, 8), (18, 38), 1, True, 0.4
    ),
}


def iou(a, b):
    """Intersection over union of two boxes (x0, y0, x1, y1), upper ends exclusive."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(areas) - width * height)


def draw_background(rng, size, clutter):
    width, height = size
    base = rng.choice(
        (
            (235, 235, 230),
            (200, 205, 210),
            (90, 95, 100),
            (35, 35, 45),
            (245, 240, 215),
            (215, 230, 215),
        )
    )
    if not clutter:
        return Image.new("RGB", size, base)
    other = tuple(max(0, min(255, level + rng.randint(-60, 60))) for level in base)
    mask = Image.linear_gradient("L").rotate(rng.choice((0, 90, 180, 270))).resize(size)
    image = Image.composite(Image.new("RGB", size, base), Image.new("RGB", size, other), mask)
    # Coarse grey noise: blotches as large as details of the shapes, and PNG files that stay small.
    cells = (width // 8, height // 8)
    noise = Image.frombytes("L", cells, rng.randbytes(cells[0] * cells[1])).resize(
        size, Image.Resampling.NEAREST
    )
    image = Image.blend(image, Image.merge("RGB", (noise, noise, noise)), rng.uniform(0.03, 0.14))
    draw = ImageDraw.Draw(image)
    for _ in range(rng.randint(2, 6)):
        ends = [(rng.randrange(width), rng.randrange(height)) for _ in range(2)]
        colour = (
            rng.choice(tuple(COLOURS.values())) if rng.random() < 0.5 else (rng.randrange(256),) * 3
        )
        draw.line(ends, fill=colour, width=rng.randint(1, 2))
    return image


def place(rng, shape, size, difficulty, taken):
    """A box (x0, y0, x1, y1) for the shape that keeps its distance from those taken, or None after
    60 tries.
    """
    low, high = difficulty.side_px
    for _ in range(60):
        w = h = rng.randint(low, high)
        if shape in ("rectangle", "triangle"):
            h = rng.randint(low, high)
        if shape == "rectangle" and max(w, h) < 1.5 * min(w, h):
            continue  # would look like a square
        x0, y0 = rng.randint(1, size[0] - w - 1), rng.randint(1, size[1] - h - 1)
        box = (x0, y0, x0 + w, y0 + h)
        m = difficulty.margin_px
        if all(iou((x0 - m, y0 - m, x0 + w + m, y0 + h + m), other) == 0.0 for other in taken):
            return box
    return None


def triangle(rng, box):
    """Corner pixels of a triangle that fills `box`, apex up or down."""
    x0, y0, x1, y1 = box[0], box[1], box[2] - 1, box[3] - 1
    apex = rng.randint(x0 + (x1 - x0) // 4, x1 - (x1 - x0) // 4)
    return (
        [(apex, y0), (x1, y1), (x0, y1)] if rng.random() < 0.5 else [(x0, y0), (x1, y0), (apex, y1)]
    )


def make_scene(rng, difficulty):
    size = rng.choice(difficulty.image_sizes)
    scene = Scene(draw_background(rng, size, difficulty.clutter))
    draw = ImageDraw.Draw(scene.image)
    taken = []
    for _ in range(rng.randint(*difficulty.num_objects)):
        if scene.objects and rng.random() < difficulty.repeat:
            colour, shape = scene.objects[-1]["desc"].split()
        else:
            shape, colour = rng.choices(SHAPES, SHAPE_WEIGHTS)[0], rng.choice(tuple(COLOURS))
        box = place(rng, shape, size, difficulty, taken)
        if box is None:
            continue
        taken.append(box)
        jitter = 18 if difficulty.clutter else 8
        fill = tuple(
            max(0, min(255, level + rng.randint(-jitter, jitter))) for level in COLOURS[colour]
        )
        inclusive = (box[0], box[1], box[2] - 1, box[3] - 1)
        entry = {"desc": f"{colour} {shape}"}
        if shape in POLY_SHAPES:
            points = triangle(rng, box)
            draw.polygon(points, fill=fill)
            entry["poly"] = [
                [to_bin(x + 0.5, size[0]), to_bin(y + 0.5, size[1])] for x, y in points
            ]
        else:
            (draw.ellipse if shape == "circle" else draw.rectangle)(inclusive, fill=fill)
            entry["bbox_2d"] = [to_bin(value, size[axis % 2]) for axis, value in enumerate(box)]
        scene.objects.append(entry)
    return scene


def main():
    return run_generator(
        __doc__,
        GENERATOR_VERSION,
        DIFFICULTIES,
        "scenes.json",
        lambda rng, split, part: make_scene(rng, DIFFICULTIES[split]),
    )


if __name__ == "__main__":
    sys.exit(main())
