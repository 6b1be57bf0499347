"""Checks of make_scenes.py."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import make_scenes
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error.name} is not installed (scripts/setup)")
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
    sys.argv = ["make_scenes.py", *arguments]
    make_scenes.main()
    return {
        part: [json.loads(line) for line in (directory / f"{part}.jsonl").read_text().splitlines()]
        for part in ("train", "val")
    }


def box_of(entry):
    points = entry.get("poly") or [entry["bbox_2d"][:2], entry["bbox_2d"][2:]]
    xs, ys = zip(*points)
    return (min(xs), min(ys), max(xs), max(ys))


class Scenes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        cls.simple = make(cls.root / "simple", "simple", 60, 20, 7)
        cls.hard = make(cls.root / "hard", "hard", 60, 20, 7)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def records(self):
        for split in ("simple", "hard"):
            for part, records in getattr(self, split).items():
                for record in records:
                    yield self.root / split, record

    def test_records_agree_with_their_images(self):
        for directory, record in self.records():
            with Image.open(directory / record["images"][0]) as image:
                self.assertEqual(image.size, (record["width"], record["height"]))
                self.assertEqual((image.width % 32, image.height % 32), (0, 0))
                self.assertEqual(image.mode, "RGB")

    def test_geometry_is_legal_and_hardly_overlaps(self):
        for _, record in self.records():
            boxes = []
            for entry in record["objects"]:
                self.assertEqual(("bbox_2d" in entry) + ("poly" in entry), 1)
                flat = entry.get("bbox_2d") or [value for point in entry["poly"] for value in point]
                self.assertTrue(all(isinstance(value, int) and 0 <= value <= 999 for value in flat))
                x0, y0, x1, y1 = box_of(entry)
                self.assertLess(x0, x1)
                self.assertLess(y0, y1)
                boxes.append((x0, y0, x1, y1))
            for i, a in enumerate(boxes):
                for b in boxes[:i]:
                    self.assertLessEqual(make_scenes.iou(a, b), 0.1)

    def test_the_middle_of_a_box_has_the_colour_of_its_description(self):
        for directory, record in self.records():
            with Image.open(directory / record["images"][0]) as image:
                for entry in record["objects"]:
                    points = entry.get("poly") or [entry["bbox_2d"][:2], entry["bbox_2d"][2:]]
                    centre = [sum(axis) / len(points) for axis in zip(*points)]
                    pixel = image.getpixel(
                        (int(centre[0] * image.width / 1000), int(centre[1] * image.height / 1000))
                    )
                    colour = make_scenes.COLOURS[entry["desc"].split()[0]]
                    self.assertLessEqual(
                        max(abs(a - b) for a, b in zip(pixel, colour)),
                        18,
                        (record["images"], entry, pixel),
                    )

    def test_bins_are_outer_edges_rounded(self):
        self.assertEqual(make_scenes.to_bin(0, 128), 0)
        self.assertEqual(make_scenes.to_bin(64, 128), 500)
        self.assertEqual(make_scenes.to_bin(128, 128), 999)
        self.assertEqual(make_scenes.to_bin(4, 160), 25)

    def test_difficulties_differ_as_documented(self):
        counts = {
            split: [len(record["objects"]) for record in getattr(self, split)["train"]]
            for split in ("simple", "hard")
        }
        self.assertTrue(all(1 <= count <= 5 for count in counts["simple"]))
        self.assertGreater(sum(counts["hard"]), 1.2 * sum(counts["simple"]))
        self.assertTrue(
            all(
                (record["width"], record["height"]) == (128, 128) for record in self.simple["train"]
            )
        )
        self.assertGreater(
            len({(record["width"], record["height"]) for record in self.hard["train"]}), 1
        )

    def test_a_scene_depends_on_its_key_only(self):
        again = make(self.root / "again", "hard", 5, 3, 7)
        other = make(self.root / "other", "hard", 5, 3, 8)
        self.assertEqual(again["train"], self.hard["train"][:5])
        self.assertEqual(again["val"], self.hard["val"][:3])
        self.assertNotEqual(other["train"], again["train"])
        self.assertNotEqual(
            [r["objects"] for r in again["val"]], [r["objects"] for r in again["train"][:3]]
        )
        first, second = (
            Image.open(self.root / name / "train/00000.png").tobytes() for name in ("again", "hard")
        )
        self.assertEqual(first, second)

    def test_a_second_call_makes_nothing_anew(self):
        path = self.root / "hard" / "train.jsonl"
        before = path.stat().st_mtime_ns
        make(self.root / "hard", "hard", 60, 20, 7)
        self.assertEqual(path.stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
