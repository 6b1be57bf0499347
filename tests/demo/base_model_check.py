"""Checks of dev/demo/make_base.py and to_bfloat16.py against tokenizers and transformers."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "dev" / "demo"
sys.path.insert(0, str(TOOLS))
try:
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration
except ImportError as error:
    print(f"skipped: {error.name} is not installed (scripts/setup --oracles)")
    sys.exit(77)

ANSWER = (
    '{"object_1": {"desc": "red circle", "bbox_2d": ["<|coord_5|>", "<|coord_6|>", "<|coord_7|>", '
    '"<|coord_999|>"]}, '
    '"object_2": {"desc": "blue triangle", "poly": [["<|coord_10|>", "<|coord_20|>"], '
    '["<|coord_30|>", "<|coord_20|>"], '
    '["<|coord_10|>", "<|coord_40|>"]]}}'
)


class BaseModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        cls.base = cls.root / "base"
        subprocess.run(
            [sys.executable, TOOLS / "make_base.py", cls.base],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        cls.tokenizer = Tokenizer.from_file(str(cls.base / "tokenizer.json"))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def pieces(self, text):
        ids = self.tokenizer.encode(text).ids
        return [self.tokenizer.decode([token], skip_special_tokens=False) for token in ids]

    def test_an_object_costs_thirteen_tokens(self):
        self.assertEqual(
            self.pieces(ANSWER)[:15],
            [
                "{",
                '"object_',
                "1",
                '": {"desc": "',
                "red circle",
                '", "bbox_2d": ["',
                "<|coord_5|>",
                '", "',
                "<|coord_6|>",
                '", "',
                "<|coord_7|>",
                '", "',
                "<|coord_999|>",
                '"]}',
                ', "object_',
            ],
        )
        self.assertEqual("".join(self.pieces(ANSWER)), ANSWER)

    def test_a_stock_answer_has_one_token_a_digit_and_one_between_objects(self):
        stock = (
            '```json\n[\n\t{"bbox_2d": [12, 3, 456, 1000], "label": "seven"},\n\t{"bbox_2d": '
            '[0, 1, 2, 3], "label": "red circle"}\n]\n```'
        )
        pieces = self.pieces(stock)
        self.assertEqual("".join(pieces), stock)
        self.assertEqual(
            pieces[:4] + pieces[14:17],
            [
                '```json\n[\n\t{"bbox_2d": [',
                "1",
                "2",
                ", ",
                '], "label": "',
                "seven",
                '"},\n\t{"bbox_2d": [',
            ],
        )

    def test_what_is_appended_is_cut_as_in_a_whole_answer(self):
        seam = ANSWER.index(', "object_2"')
        self.assertEqual(
            self.pieces(ANSWER[:seam]) + self.pieces(ANSWER[seam:]), self.pieces(ANSWER)
        )
        self.assertEqual(self.pieces("{") + self.pieces(ANSWER[1:]), self.pieces(ANSWER))
        self.assertEqual(self.pieces("{}"), ["{", "}"])

    def test_any_text_survives(self):
        for text in (
            "naïve 日本 \U0001f600\n\n\tx",
            "}}\"]}",
            "<|im_start|>system\nhello<|im_end|>\n",
            "",
        ):
            ids = self.tokenizer.encode(text).ids
            self.assertEqual(self.tokenizer.decode(ids, skip_special_tokens=False), text)

    def test_transformers_reads_the_same_tokens(self):
        tokenizer = AutoTokenizer.from_pretrained(self.base)
        for text in (
            ANSWER,
            "Find every digit and mark.",
            "Find every shape.",
            "<|im_start|>user\n",
        ):
            self.assertEqual(tokenizer.encode(text), self.tokenizer.encode(text).ids)
        messages = [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "T"}]},
        ]
        rendered = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        self.assertEqual(
            rendered,
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n"
            "<|vision_start|><|image_pad|><|vision_end|>T<|im_end|>\n"
            "<|im_start|>assistant\n",
        )

    def test_transformers_loads_every_tensor(self):
        model, report = Qwen3VLForConditionalGeneration.from_pretrained(
            self.base, output_loading_info=True
        )
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            self.assertFalse(report[kind], kind)
        total = sum(parameter.numel() for parameter in model.parameters())
        self.assertTrue(3.0e6 < total < 3.5e6, total)

    def test_coord_tokens_are_a_thousand_distinct_ids(self):
        ids = {self.tokenizer.token_to_id(f"<|coord_{k}|>") for k in range(1000)}
        self.assertEqual(len(ids - {None}), 1000)

    def test_rounding_to_bfloat16_keeps_the_directory_loadable(self):
        small = self.root / "bf16"
        subprocess.run(
            [sys.executable, TOOLS / "to_bfloat16.py", self.base, small],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        model = Qwen3VLForConditionalGeneration.from_pretrained(small, dtype="auto")
        self.assertEqual(model.dtype, torch.bfloat16)
        self.assertEqual(
            json.loads((small / "config.json").read_text())["text_config"]["dtype"], "bfloat16"
        )
        self.assertTrue((small / "tokenizer.json").exists())


if __name__ == "__main__":
    unittest.main()
