"""The stages from Python: the examples that the stage tools are held to, and what is particular to
Python. Run with rematch on the path.

usage: stages_check.py ROOT [VECTORS TOKENIZER]     VECTORS: a directory of {"id", "input",
"expect"} lines
"""

import doctest
import json
import math
import sys
import threading
import time
import typing
import unittest
from pathlib import Path

import rematch

ROOT = Path(sys.argv[1])
VECTORS = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "tests/golden/vectors"
TOKENIZER = Path(sys.argv[3]) if len(sys.argv) > 3 else ROOT / "tests/golden/tokenizer"
BOX = {"bbox_2d": [100, 100, 300, 300]}


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return (
            isinstance(a, (int, float))
            and isinstance(b, (int, float))
            and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        )
    if isinstance(a, dict):
        return isinstance(b, dict) and all(
            key in b and same(value, b[key]) for key, value in a.items()
        )
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def called(name, given, model, answer_format):
    """A stage tool's input as the call of the function."""
    if name == "parse":
        return rematch.parse(given["response_token_ids"], model=model, answer_format=answer_format)
    if name == "match":
        return rematch.match(
            given["predictions"], given["ground_truth"], **given.get("options", {})
        )
    if name == "pack":
        return rematch.pack(**given)
    return rematch.segment(
        given["prompt_token_ids"],
        given["response_token_ids"],
        given["ground_truth"],
        model=model,
        options=given.get("options"),
        answer_format=answer_format,
    )


class Numbers:
    """Stands for an array or a tensor."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


class StagesTest(unittest.TestCase):
    def test_shows_its_functions_in_dir(self):
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

    def test_give_what_the_stage_tools_give(self):
        files = sorted(VECTORS.glob("*.jsonl"))
        self.assertGreaterEqual(len(files), 5)
        for file in files:
            name = file.stem.replace("random_", "").split("_")[0]
            answer_format = "qwen_json" if "qwen" in file.stem else None
            model = str(TOKENIZER) + "_merged" if file.stem.endswith("_merged") else TOKENIZER
            for row in map(json.loads, file.read_text().splitlines()):
                found = called(name, row["input"], model, answer_format)
                for key, value in row["expect"].items():
                    self.assertTrue(
                        same(value, found.get(key)),
                        f"{file.stem} {row['id']} {key}: {value} expected, {found.get(key)} given",
                    )

    def test_say_what_is_wrong_where_and_how_to_mend_it(self):
        with self.assertRaises(rematch.Error) as raised:
            rematch.match([{"bbox_2d": [1, 2, 3]}], [BOX])
        error = raised.exception
        self.assertEqual((error.kind, error.where), ("data", "predictions[0]"))
        self.assertIn("four coordinates", error.error)
        self.assertTrue(error.fix)
        self.assertIn("where: predictions[0]", str(error))
        with self.assertRaisesRegex(rematch.Error, "maskiou_gate") as raised:
            rematch.match([BOX], [BOX], maskiou_gate=2.0)
        self.assertEqual(raised.exception.kind, "config")
        with self.assertRaisesRegex(rematch.Error, "/nowhere"):
            rematch.parse([1], model="/nowhere")
        with self.assertRaisesRegex(rematch.Error, "input.packing_length"):
            rematch.pack([1], 0)
        with self.assertRaises(TypeError):
            rematch.match([BOX], [BOX], iou_gate=0.5)

    def test_take_plain_values_and_what_turns_into_them(self):
        self.assertEqual(rematch.pack(Numbers([500, 100]), 1000), rematch.pack((500, 100), 1000))
        for odd, mention in (
            (object(), "not plain"),
            (1 << 80, "too large"),
            ({1: 2}, "not text"),
            ("\ud800", "Unicode"),
        ):
            with self.assertRaisesRegex(rematch.Error, mention):
                rematch.pack([odd], 10)
        cyclic = []
        cyclic.append(cyclic)
        with self.assertRaisesRegex(rematch.Error, "nested"):
            rematch.pack(cyclic, 10)

    def test_let_other_threads_run(self):
        truth = [{"poly": [x, 0, x + 40, 10 + x, x, 900 - x]} for x in range(0, 900, 9)]
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick, daemon=True)  # a failed call ends the check
        thread.start()

        def ticked_amid_a_call():
            begin = time.monotonic()
            rematch.match(truth, truth, maskiou_resolution=2048, candidate_top_k=100)
            tenth = (time.monotonic() - begin) / 10
            return any(begin + tenth < tick < begin + 9 * tenth for tick in ticks)

        # On a busy machine one call may be too short for the other thread; a call that kept the
        # lock would be so every time.
        ticked = any(ticked_amid_a_call() for _ in range(10))
        done.set()
        thread.join()
        self.assertTrue(ticked)

    def test_answer_from_several_threads_what_they_answer_from_one(self):
        rows = [json.loads(line) for line in (VECTORS / "parse.jsonl").read_text().splitlines()]
        alone = [called("parse", row["input"], TOKENIZER, None) for row in rows]
        answers = [None] * 4

        def work(i):
            answers[i] = [called("parse", row["input"], TOKENIZER, None) for row in rows]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [alone] * 4)

    def test_are_typed(self):
        self.assertTrue((Path(rematch.__file__).parent / "py.typed").exists())
        for name in ("parse", "match", "segment", "pack", "evaluate"):
            function = getattr(rematch, name)
            self.assertIn("return", typing.get_type_hints(function))
            self.assertIn("Args:", function.__doc__)
            self.assertIn("Example:", function.__doc__)

    def test_their_examples_hold(self):
        found = doctest.testmod(rematch.stages, extraglobs={"rematch": rematch})
        self.assertEqual(found.failed, 0)
        self.assertGreaterEqual(found.attempted, 5)

    def test_score_scenes(self):
        cat, dog = {"desc": "cat", **BOX}, {"desc": "dog", "bbox_2d": [500, 500, 900, 900]}
        scene = {
            "predictions": [cat, {**dog, "desc": "a\nwolf"}],
            "ground_truth": [cat, dog],
            "width": 640,
            "height": 480,
            "status": "complete",
        }
        scores = rematch.evaluate([scene])
        self.assertEqual(scores["eval_rollout_f1"], 1.0)
        self.assertEqual(scores["eval_rollout_f1_labels_iou50"], 0.5)
        self.assertAlmostEqual(scores["coco_ap"], 0.5)
        self.assertEqual(scores["eval_rollout_parse_truncated_rate"], 0.0)
        self.assertEqual([row["name"] for row in scores["per_class"]], ["cat", "dog", "a wolf"])
        self.assertEqual(rematch.evaluate([])["num_samples"], 0)

    def test_rank_by_scores_where_all_scenes_have_them(self):
        cat = {"desc": "cat", **BOX}
        far = {"desc": "cat", "bbox_2d": [900, 900, 950, 950]}
        scene = {"predictions": [far, cat], "ground_truth": [cat], "width": 640, "height": 480}
        by_order, by_score = (
            rematch.evaluate([scene]),
            rematch.evaluate([{**scene, "scores": [0.2, 0.9]}]),
        )
        self.assertAlmostEqual(by_order["coco_ap"], 0.5)
        self.assertAlmostEqual(by_score["coco_ap"], 1.0)
        self.assertEqual([by_order["coco_ranking"], by_score["coco_ranking"]], ["order", "score"])
        self.assertEqual(by_score["calibration"]["bins"][0]["count"], 2)
        self.assertEqual(
            rematch.evaluate([scene, {**scene, "scores": [0.2, 0.9]}])["coco_ranking"], "order"
        )
        for scores in ([0.5], [0.5, 2], [0.5, "high"], 0.5):
            with self.assertRaisesRegex(rematch.Error, r"scenes\[0\].scores"):
                rematch.evaluate([{**scene, "scores": scores}])

    def test_read_the_options_of_scores(self):
        cat, dog = {"desc": "cat", **BOX}, {"desc": "dog", "bbox_2d": [500, 500, 900, 900]}
        scene = {
            "predictions": [cat, {**dog, "desc": "a\nwolf"}],
            "ground_truth": [cat, dog],
            "width": 640,
            "height": 480,
            "status": "complete",
        }
        self.assertEqual(
            rematch.evaluate([scene], label_match="exact", maskiou_gate=1.0)[
                "eval_rollout_matched"
            ],
            2,
        )
        with self.assertRaisesRegex(rematch.Error, r"scenes\[1\].width"):
            rematch.evaluate([scene, {**scene, "width": 0}])
        with self.assertRaisesRegex(rematch.Error, "1 of 2"):
            rematch.evaluate(
                [scene, {key: value for key, value in scene.items() if key != "status"}]
            )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
