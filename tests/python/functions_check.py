"""rematch.predict, show and read_log, from this checkout's Python with a built program.

usage: functions_check.py PROGRAM
"""

import doctest
import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

from pretend_install import ROOT, install

PHOTOS = ROOT / "tests/golden/first_run/photos"
STORED = ROOT / "tests/golden/vision_images"  # of each kind, with the pixels that the program sees
CAT = {"desc": "cat", "bbox_2d": [100, 100, 500, 900]}


class FunctionsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rematch_functions_")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def raised(self, call, *arguments, **options):
        with self.assertRaises(rematch.Error) as caught:
            call(*arguments, **options)
        self.assertTrue(caught.exception.fix)
        return caught.exception

    def test_a_checkout_says_how_to_install(self):
        done = subprocess.run(
            [sys.executable, "-c", "import rematch"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertIn("run scripts/wheel, then pip install", done.stderr.splitlines()[-1])

    def test_dir_is_the_api(self):
        self.assertEqual(
            dir(rematch),
            [
                "Error",
                "__version__",
                "eval",
                "evaluate",
                "init",
                "live_plot",
                "match",
                "merge",
                "pack",
                "parse",
                "predict",
                "probe",
                "read_log",
                "report",
                "segment",
                "show",
                "train",
            ],
        )

    def test_every_docstring_has_an_example_that_holds(self):
        import PIL.Image

        homes = ("commands", "curves", "errors", "logs", "pictures", "prediction", "training")
        for name in homes:
            module = importlib.import_module(f"rematch.{name}")
            found = doctest.testmod(module, extraglobs={"rematch": rematch, "PIL": PIL})
            self.assertEqual(found.failed, 0, name)
        for name in rematch.__all__:
            if name not in ("evaluate", "match", "pack", "parse", "segment"):  # stages_check.py
                self.assertIn("Example:", getattr(rematch, name).__doc__, name)

    # predict
    # ----------------------------------------------------------------------------------------------

    def test_predict_gives_what_the_program_prints(self):
        import PIL.Image

        cat, cup = PHOTOS / "chelsea.jpg", PHOTOS / "coffee.jpg"
        lines = subprocess.run(
            [PROGRAM, "predict", ROOT / "demo/model", cat, cup],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        expected = [json.loads(line) for line in lines]
        self.assertEqual(rematch.predict(ROOT / "demo/model", [cat, str(cup)]), expected)
        self.assertEqual(rematch.predict(ROOT / "demo/model", cat), expected[:1])
        picture = PIL.Image.open(cat)
        self.assertEqual(
            rematch.predict(ROOT / "demo/model", picture), [{**expected[0], "image": ""}]
        )
        self.assertEqual(rematch.predict(ROOT / "demo/model", []), [])

    def test_photos_stored_rotated_are_turned_upright(self):
        import PIL.Image

        turned = PIL.Image.open(PHOTOS / "chelsea.jpg").rotate(90, expand=True)
        exif = PIL.Image.Exif()
        exif[0x0112] = 6  # viewers turn it clockwise
        turned.save(self.directory / "phone.png", exif=exif)
        phone = PIL.Image.open(self.directory / "phone.png")
        upright, stored, picture = rematch.predict(
            ROOT / "demo/model", [PHOTOS / "chelsea.jpg", self.directory / "phone.png", phone]
        )
        self.assertEqual((stored["width"], stored["height"]), (384, 256))
        self.assertEqual({**stored, "image": ""}, {**upright, "image": ""})
        self.assertEqual(picture, {**upright, "image": ""})
        for image in (phone, self.directory / "phone.png"):
            self.assertEqual(rematch.show(image, []).size, (384, 256))

    def test_a_picture_is_seen_as_its_file_is(self):
        import PIL.Image

        rows = [json.loads(line) for line in (STORED / "manifest.jsonl").open()]
        files = [STORED / row["file"] for row in rows if "refused" not in row]
        pictures = [PIL.Image.open(file) for file in files]
        for file, picture in zip(files, pictures):
            seen = Path(f"{file}.rgb").read_bytes()
            for image in (file, picture):
                self.assertEqual(rematch.show(image, []).tobytes(), seen, file.name)
        alpha = PIL.Image.open(STORED / "png_rgba.png")
        for mode in ("PA", "RGBa", "CMYK", "I", "F"):  # modes that PNG lacks
            pictures.append(alpha.convert(mode))
            files.append(self.directory / f"{mode}.png")
            rematch.show(pictures[-1], []).save(files[-1])
        found = rematch.predict(ROOT / "tests/shapes/model", [*files, *pictures])
        for file, of_file, of_picture in zip(files, found, found[len(files) :]):
            self.assertEqual(of_picture, {**of_file, "image": ""}, file.name)

    def test_predict_passes_its_options(self):
        short = rematch.predict(
            ROOT / "demo/model",
            PHOTOS / "chelsea.jpg",
            max_new_tokens=1,
            min_score=0.5,
            system="",
            device="cpu",
            backend="hf",
        )
        self.assertEqual(short[0]["objects"], [])
        self.assertLess(len(short[0]["text"]), 20)

    def test_an_unreadable_image_does_not_end_the_others(self):
        (self.directory / "-empty.png").write_text("")
        found = rematch.predict(
            ROOT / "demo/model",
            [self.directory / "-empty.png", PHOTOS / "chelsea.jpg"],
            max_new_tokens=4,
        )
        self.assertEqual([one["status"] == "unreadable" for one in found], [True, False])
        self.assertTrue(found[0]["error"])

    def test_predict_raises_what_the_program_says(self):
        missing = self.raised(rematch.predict, ROOT / "demo/model", self.directory / "none.jpg")
        self.assertEqual((missing.kind, missing.error), ("environment", "the image does not exist"))
        self.assertIn("none.jpg", missing.where)
        self.assertIn(
            "no_model",
            str(self.raised(rematch.predict, self.directory / "no_model", PHOTOS / "chelsea.jpg")),
        )
        self.assertEqual(
            self.raised(rematch.predict, ROOT / "demo/model", PHOTOS, backend="onnx").kind, "config"
        )
        self.assertIn("list", self.raised(rematch.predict, ROOT / "demo/model", [[1, 2]]).what)

    def test_a_picture_that_cannot_be_saved_is_an_error_with_its_place(self):
        import PIL.Image

        cut = self.directory / "cut.jpg"
        cut.write_bytes((PHOTOS / "chelsea.jpg").read_bytes()[:2000])
        for picture in (PIL.Image.new("RGB", (0, 0)), PIL.Image.open(cut)):
            error = self.raised(rematch.predict, ROOT / "demo/model", [picture])
            self.assertEqual((error.kind, error.where), ("data", "images[0]"))

    def test_an_end_without_a_message_is_an_error_too(self):
        from rematch.errors import from_program

        self.assertIn("signal 9", from_program("rematch predict", -9, "").what)
        several = from_program(
            "x",
            2,
            "warning: w\nerror: a\n  where: b\n  what:  c\nd\n  fix:   e\n\nerror: f\n  where: g\n"
            "  what:  h\n  fix:   i\n",
        )
        self.assertEqual([one["what"] for one in several.problems], ["c\nd", "h"])
        self.assertEqual(several.kind, "config")

    def test_warnings_of_the_program_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            from rematch.program import Output

            said = Output(0, "", "model  x\nwarning: odd\n  a\n  b\nwarning: c\nmodel\n  y\n", {})
            with mock.patch("rematch.prediction.run", return_value=said):
                rematch.predict("m", "a.jpg")
        self.assertEqual([str(one.message) for one in caught], ["odd\n  a\n  b", "c"])
        self.assertEqual(caught[0].filename, __file__)

    # show
    # ----------------------------------------------------------------------------------------------

    def test_show_draws_boxes_and_polygons(self):
        import PIL.Image

        white = PIL.Image.new("RGB", (400, 300), "white")
        triangle = {"desc": "dog", "poly": [600, 100, 900, 100, 750, 800], "score": 0.25}
        drawn = rematch.show(white, [CAT, triangle, {**CAT, "desc": "cat", "score": 0.5}])
        self.assertEqual(drawn.size, (400, 300))
        self.assertNotEqual(drawn.getpixel((40, 150)), (255, 255, 255))  # the left side of the box
        self.assertNotEqual(
            drawn.getpixel((40, 150)), drawn.getpixel((270, 30))
        )  # a colour for each name
        self.assertEqual(drawn.getpixel((120, 150)), (255, 255, 255))
        self.assertEqual(
            white.getpixel((40, 150)), (255, 255, 255), "the given picture stays as it is"
        )
        self.assertEqual(rematch.show(white, [triangle], min_score=0.5).tobytes(), white.tobytes())
        self.assertEqual(rematch.show(PHOTOS / "chelsea.jpg", []).size, (384, 256))

    def test_show_takes_polygons_in_pairs_and_scores_that_are_none(self):
        import PIL.Image

        white = PIL.Image.new("RGB", (400, 300), "white")
        flat = {"desc": "dog", "poly": [600, 100, 900, 100, 750, 800]}
        drawn = rematch.show(white, [flat], min_score=0.5).tobytes()
        self.assertNotEqual(drawn, white.tobytes())
        pairs = {**flat, "poly": [[600, 100], (900, 100), [750, 800]], "score": None}
        self.assertEqual(rematch.show(white, [pairs], min_score=0.5).tobytes(), drawn)

    def test_show_names_what_cannot_be_drawn(self):
        import PIL.Image

        white = PIL.Image.new("L", (40, 30))
        for bad in (
            {},
            {"bbox_2d": [1, 2, 3]},
            {"bbox_2d": [1, 2, 3, "4"]},
            {"bbox_2d": [0, 0, 1, 4000]},
            {"poly": [1, 2, 3, 4]},
            {"poly": [[1, 2], [3, 4]]},
            {"poly": [[1, 2], [3, 4], 5, 6]},
            {"poly": [[1, 2, 3], [4, 5, 6]]},
            {**CAT, "poly": [1, 2, 3, 4, 5, 6]},
        ):
            self.assertEqual(self.raised(rematch.show, white, [CAT, bad]).where, "objects[1]", bad)
        self.assertEqual(self.raised(rematch.show, "none.jpg", [CAT]).where, "none.jpg")

    # read_log
    # ----------------------------------------------------------------------------------------------

    def log(self, text):
        (self.directory / "logging.jsonl").write_bytes(text.encode())
        return rematch.read_log(self.directory)

    def test_read_log_keeps_steps_and_evaluations_apart(self):
        text = (
            '{"step": 0, "eval_loss": 9.0, "eval_set": "a"}\n{"step": 1, "loss": 3.0}\n'
            '{"step": 2, "loss": NaN}\n'
        )
        log = self.log(text)
        self.assertEqual([row["step"] for row in log.steps], [1, 2])
        self.assertEqual(log.evaluations, [{"step": 0, "eval_loss": 9.0, "eval_set": "a"}])
        self.assertEqual(
            rematch.read_log(self.directory / "logging.jsonl").steps[0], {"step": 1, "loss": 3.0}
        )

    def test_read_log_leaves_out_a_torn_end_only(self):
        self.assertEqual(len(self.log('{"step": 1, "loss": 3.0}\n{"step": 2, "lo').steps), 1)
        self.assertEqual(len(self.log('{"step": 1}\n\0\0\0').steps), 1)
        self.assertEqual(len(self.log('{"step": 1}\n[]\n{"step": "x"}\n').steps), 1)
        self.assertEqual(
            self.raised(self.log, '{]\n{"step": 1}\n').where,
            f"{self.directory / 'logging.jsonl'}:1",
        )
        self.assertEqual(self.raised(rematch.read_log, self.directory / "none").kind, "environment")


if __name__ == "__main__":
    if os.environ.get("REMATCH_PRETEND_INSTALL"):
        PROGRAM = Path(sys.argv[1])
        import rematch

        unittest.main(argv=sys.argv[:1])
    with tempfile.TemporaryDirectory(prefix="rematch_install_") as place:
        given = {**install(place, sys.argv[1]), "REMATCH_PRETEND_INSTALL": "1"}
        sys.exit(
            subprocess.run(
                [sys.executable, __file__, sys.argv[1]], env=given, check=False
            ).returncode
        )
