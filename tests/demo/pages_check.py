"""Checks of dev/demo/make_pages.py."""

import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "dev" / "demo"))
try:
    import make_pages
    from PIL import Image, ImageChops

    SCANS = make_pages.load_scans()
except ImportError as error:
    print(f"skipped: {error.name} is not installed (scripts/setup)")
    sys.exit(77)
except SystemExit:
    print("skipped: the scans of digits are missing (scripts/setup)")
    sys.exit(77)


def make(directory, split, num_train, num_val, seed):
    arguments = [
        str(directory),
        "--split",
        split,
        "--num-train",
        str(num_train),
        "--num-val",
        str(num_val),
        "--seed",
        str(seed),
    ]
    sys.argv = ["make_pages.py", *arguments]
    make_pages.main()
    return {
        part: [json.loads(line) for line in (directory / f"{part}.jsonl").read_text().splitlines()]
        for part in ("train", "val")
    }


def points_of(entry):
    box = entry.get("bbox_2d")
    return entry.get("poly") or [box[:2], box[2:]]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        cls.pages = {
            split: make(cls.root / split, split, 60, 20, 7) for split in ("easy", "crowded")
        }

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def records(self):
        for split, parts in self.pages.items():
            for records in parts.values():
                for record in records:
                    yield split, record

    def test_records_agree_with_their_images(self):
        for split, record in self.records():
            with Image.open(self.root / split / record["images"][0]) as image:
                self.assertEqual(image.size, (record["width"], record["height"]))
                self.assertEqual((image.width % 32, image.height % 32), (0, 0))
                self.assertEqual(image.mode, "RGB")

    def test_pages_hold_as_much_as_their_split_says(self):
        for split, record in self.records():
            self.assertLessEqual(
                len(record["objects"]), make_pages.DIFFICULTIES[split].num_objects[1]
            )
            self.assertGreater(len(record["objects"]), 0)
        mean = sum(len(record["objects"]) for record in self.pages["crowded"]["train"]) / 60
        self.assertGreater(mean, 6)
        kinds = {entry["desc"] for _, record in self.records() for entry in record["objects"]}
        self.assertEqual(kinds, {*make_pages.NAMES, make_pages.MARK})

    def test_geometry_is_legal_and_apart(self):
        for _, record in self.records():
            boxes = []
            for entry in record["objects"]:
                self.assertEqual("poly" in entry, entry["desc"] == make_pages.MARK)
                xs, ys = zip(*points_of(entry))
                self.assertTrue(
                    all(isinstance(value, int) and 0 <= value <= 999 for value in (*xs, *ys))
                )
                box = (min(xs), min(ys), max(xs), max(ys))
                self.assertLess(box[0], box[2])
                self.assertLess(box[1], box[3])
                self.assertFalse(any(make_pages.boxes_meet(box, other, 0) for other in boxes))
                boxes.append(box)

    def test_boxes_are_those_of_the_ink(self):
        """A digit written on white paper fills its box to the edges."""
        for seed in range(40):
            rng = random.Random(seed)
            scan = rng.choice(SCANS["train"][seed % 10])
            mask = make_pages.write_digit(rng, scan, 40, 0.25)
            ink = mask.point(lambda level: 255 if level > 64 else 0)
            self.assertEqual(ink.getbbox(), (0, 0, *mask.size))

    def test_nothing_is_drawn_outside_the_boxes(self):
        difficulty = make_pages.DIFFICULTIES["crowded"]
        for seed in range(10):
            page = make_pages.make_page(random.Random(seed), difficulty, SCANS["train"])
            rng = random.Random(seed)
            paper = make_pages.draw_paper(rng, rng.choice(difficulty.page_sizes))
            changed = (
                ImageChops.difference(page.image, paper)
                .convert("L")
                .point(lambda level: 255 if level > 60 else 0)
            )
            width, height = page.image.size
            for entry in page.objects:
                xs, ys = zip(*points_of(entry))
                box = [
                    min(xs) * width // 1000 - 2,
                    min(ys) * height // 1000 - 2,
                    max(xs) * width // 1000 + 3,
                    max(ys) * height // 1000 + 3,
                ]
                changed.paste(
                    0, (max(0, box[0]), max(0, box[1]), min(width, box[2]), min(height, box[3]))
                )
            self.assertIsNone(changed.getbbox(), seed)

    def test_no_scan_is_in_training_and_validation(self):
        seen = {
            part: {image.tobytes() for images in some.values() for image in images}
            for part, some in SCANS.items()
        }
        self.assertEqual(
            sum(len(images) for some in SCANS.values() for images in some.values()), 1797
        )
        self.assertFalse(seen["train"] & seen["val"])

    def test_bins_span_the_page(self):
        self.assertEqual(
            [make_pages.to_bin(0, 128), make_pages.to_bin(64, 128), make_pages.to_bin(128, 128)],
            [0, 500, 999],
        )

    def test_a_page_depends_on_its_index_only(self):
        again = make(self.root / "again", "easy", 10, 2, 7)
        self.assertEqual(again["train"], self.pages["easy"]["train"][:10])


if __name__ == "__main__":
    unittest.main()
