"""Writes tests/golden/text_tokenizer/: 2 000 strings of many scripts, and their ids by `tokenizers`
for two tokenizers.

(a) tests/golden/tokenizer/tokenizer.json; (b) a tokenizer trained here on a few sentences, with the
Qwen2 split pattern, NFC,
merges as strings, and added tokens that use every flag. Run from the root of the checkout:
.venv/bin/python dev/goldens/text_tokenizer.py
With a number as argument nothing is written: rows for other strings, made from that seed, go to the
standard output (a test uses this).
"""

import json
import os
import random
import sys

import tokenizers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

OUT = "tests/golden/text_tokenizer"
NUM_STRINGS = 2000

RANGES = {
    "latin": [(0x20, 0x7E), (0xC0, 0x17F), (0x1E00, 0x1EFF)],
    "cyrillic": [(0x400, 0x4FF)],
    "greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0xFB50, 0xFBFF)],
    "hebrew": [(0x591, 0x5F4), (0xFB1D, 0xFB4F)],
    "devanagari": [(0x900, 0x97F)],
    "indic": [(0x980, 0xDFF)],
    "thai": [(0xE00, 0xE7F), (0xE80, 0xEFF)],
    "tibetan": [(0xF00, 0xFFF), (0x1000, 0x109F)],
    "kana": [(0x3040, 0x30FF), (0x3000, 0x303F), (0xFF00, 0xFFEF)],
    "han": [
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0xF900, 0xFAFF),
        (0x20000, 0x2A6DF),
        (0x31350, 0x323AF),
        (0x2F800, 0x2FA1F),
    ],
    "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x11FF), (0xA960, 0xA97C), (0xD7B0, 0xD7FB)],
    "digits": [
        (0x30, 0x39),
        (0x660, 0x669),
        (0x966, 0x96F),
        (0x2150, 0x218B),
        (0x2460, 0x249B),
        (0x1D7CE, 0x1D7FF),
        (0x10D40, 0x10D49),
        (0x11F50, 0x11F59),
        (0x1E4F0, 0x1E4F9),
        (0x16D70, 0x16D79),
    ],
    "symbols": [(0x2000, 0x2BFF), (0x3200, 0x33FF), (0xA1, 0xBF)],
    "emoji": [
        (0x1F300, 0x1FAFF),
        (0x1F1E6, 0x1F1FF),
        (0x1F3FB, 0x1F3FF),
        (0xFE0E, 0xFE0F),
        (0x200D, 0x200D),
    ],
    "marks": [(0x300, 0x36F), (0x1AB0, 0x1ACE), (0x20D0, 0x20F0), (0x61, 0x7A)],
    "rare": [
        (0x10000, 0x1FFFF),
        (0x1C80, 0x1CFF),
        (0xA700, 0xA7FF),
        (0x10D40, 0x10D8F),
        (0x11380, 0x113FF),
        (0x1E5D0, 0x1E5FF),
        (0x16100, 0x1613F),
    ],
    "private": [(0xE000, 0xF8FF), (0xF0000, 0xF00FF), (0xFFF0, 0xFFFD)],
    "control": [(0x00, 0x1F), (0x7F, 0x9F)],
    "space": [
        (c, c)
        for c in [
            9,
            10,
            11,
            12,
            13,
            0x1C,
            0x1D,
            0x1E,
            0x1F,
            0x20,
            0x85,
            0xA0,
            0x1680,
            0x180E,
            0x2000,
            0x2003,
            0x200A,
            0x200B,
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x2060,
            0x3000,
            0xFEFF,
        ]
    ],
}
ATOMS = [
    "'s",
    "'T",
    "'\u017f",
    "'RE",
    "'ve",
    "'LL",
    "'d",
    "\u212a",
    "can't",
    "  ",
    "\r\n",
    "\n\n",
    "\t",
    " \n ",
    "\n  \n",
    "   x",
    "123",
    "3.14",
    "1e-4",
    "...",
    "!?\n\n",
    '{"object_1": {"desc": "',
    '", "bbox_2d": [',
    '"<|coord_5|>"',
    "<|coord_999|>",
    "<|coord_10",
    "<|im_start|>",
    "<|im_end|>",
    "<|im_end|>\n",
    "<|image_pad|>",
    "x<|im_end|>y",
    "<|im_<|im_end|>",
    "<|",
    "|>",
    "[MASK]",
    "  [MASK]  ",
    "<norm\u00e9>",
    "<norme\u0301>",
    "<norm\u00e9 long>",
    "\u1100\u1161\u11a8",
    "e\u0301\u0323",
    "\u0344",
    "\u2126",
    "\uac00\u11a8",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u0958",
    "\ufb2c",
    "a\u0315\u0300\u05ae\u0062",
    "<left>",
    " <left>",
    "<right>  ",
    "\u3000<both>\u00a0",
    "<both><both>",
]


def make_strings(seed=20240607):
    rng = random.Random(seed)

    def char(kind):
        low, high = rng.choice(RANGES[kind])
        return chr(rng.randint(low, high))

    def word(kind):
        return "".join(char(kind) for _ in range(rng.choice([1, 1, 2, 3, 5, 8])))

    kinds = list(RANGES)
    strings = ["", " ", "\n", "a", "\u0301"] + ATOMS
    while len(strings) < NUM_STRINGS:
        main = rng.choice(kinds)
        parts = []
        for _ in range(rng.randint(1, 9)):
            roll = rng.random()
            if roll < 0.22:
                parts.append(rng.choice(ATOMS))
            elif roll < 0.4:
                parts.append(word(rng.choice(kinds)))
            elif roll < 0.55:
                parts.append(word("space"))
            else:
                parts.append(word(main))
            if rng.random() < 0.4:
                parts.append(" ")
        strings.append("".join(parts))
    return strings


def train_second():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    corpus = (
        make_strings()[::3]
        + [
            "the red circle is left of the blue square",
            "the objects are listed from top to bottom, then from left to right",
            '{"object_1": {"desc": "green triangle", "bbox_2d": [1, 2, 3, 4]}}',
            "\u043a\u0440\u0430\u0441\u043d\u044b\u0439 \u043a\u0440\u0443\u0433",
            "\u0623\u062d\u0645\u0631",
            "\u7ea2\u8272\u7684\u5706 \u7ea2\u8272\u7684\u65b9\u5757",
            "\ube68\uac04 \uc6d0 \ube68\uac04 \uc0ac\uac01\ud615",
        ]
        * 4
    )
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_tokens(
        [
            AddedToken(t, special=True, normalized=False)
            for t in ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|im_"]
        ]
    )
    tokenizer.add_tokens(
        [
            AddedToken("[MASK]", normalized=False),
            AddedToken("<norm\u00e9>", normalized=True),
            AddedToken("<norme\u0301 long>", normalized=True),
            AddedToken("<left>", lstrip=True, normalized=False),
            AddedToken("<right>", rstrip=True, normalized=True),
            AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
            AddedToken("circle", normalized=True),
        ]
    )
    data = json.loads(tokenizer.to_str())
    data["model"]["merges"] = [
        m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]
    ]  # the older spelling
    return data


def write_rows(strings, file):
    first = Tokenizer.from_file("tests/golden/tokenizer/tokenizer.json")
    second = Tokenizer.from_file(f"{OUT}/second.json")
    for text in strings:
        row = {
            "text": text,
            "first": first.encode(text, add_special_tokens=False).ids,
            "second": second.encode(text, add_special_tokens=False).ids,
        }
        file.write(json.dumps(row, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) > 1:
        write_rows(make_strings(int(sys.argv[1])), sys.stdout)
        return
    os.makedirs(OUT, exist_ok=True)
    with open(f"{OUT}/second.json", "w", encoding="utf-8") as file:
        json.dump(train_second(), file, ensure_ascii=False, separators=(",", ":"))
    with open(f"{OUT}/strings.jsonl", "w", encoding="utf-8") as file:
        write_rows(make_strings(), file)
    for name in ["second.json", "strings.jsonl"]:
        with open(f"{OUT}/{name}.how", "w", encoding="utf-8") as file:
            file.write(
                ".venv/bin/python dev/goldens/text_tokenizer.py\ntokenizers "
                f"{tokenizers.__version__}\n"
            )


if __name__ == "__main__":
    main()
