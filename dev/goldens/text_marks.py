"""Writes tests/golden/text_marks/: a tokenizer of class Qwen3_5Tokenizer as vocab.json and
merges.txt, and its ids of texts with combining
marks. Run from the root of the checkout: .venv/bin/python dev/goldens/text_marks.py

The class, not the files, holds the split pattern, in which marks belong to letters.
"""

import json
import pathlib
import random
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.models.qwen3_5.tokenization_qwen3_5 import PRETOKENIZE_REGEX, Qwen3_5Tokenizer

OUT = pathlib.Path("tests/golden/text_marks")
WORDS = {
    "thai": "ที่นี่มีแมวสองตัว น้ำ ผู้หญิง เก้าอี้ รถจักรยาน ต้นไม้ ปลา",
    "hindi": "बिल्ली कुत्ता साइकिल कुर्सी पेड़ मछली हिन्दी में लिखा हुआ",
    "arabic": "قِطَّةٌ كَلْبٌ كُرْسِيٌّ شَجَرَةٌ سَمَكَةٌ دَرَّاجَةٌ",
    "vietnamese": "con mèo xe đạp cái ghế cây cối con cá nước",
    "latin": "cat dog chair tree fish bicycle café naïve",
}


def strings():
    rng = random.Random(5)
    found = []
    for text in WORDS.values():
        found += [
            text,
            unicodedata.normalize("NFD", text),
            json.dumps([{"label": text.split()[0]}], ensure_ascii=False),
        ]
    marks = [
        chr(c)
        for c in [*range(0x300, 0x30C), 0xE31, 0xE34, 0xE48, 0x93F, 0x94D, 0x64B, 0x651, 0x20E3]
    ]
    letters = "aeđกบकतقك中1 !\n\"'"
    for _ in range(300):
        found.append(
            "".join(
                rng.choice(marks) if rng.random() < 0.35 else rng.choice(letters)
                for _ in range(rng.randint(1, 14))
            )
        )
    return found


def main():
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.NFC()
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    trained.train_from_iterator(
        strings() * 3,
        trainers.BpeTrainer(
            vocab_size=700,
            min_frequency=1,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    model = json.loads(trained.to_str())["model"]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False) + "\n")
    (OUT / "merges.txt").write_text("".join(" ".join(pair) + "\n" for pair in model["merges"]))
    (OUT / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Qwen3_5Tokenizer", "added_tokens_decoder": {}}, indent=2)
        + "\n"
    )
    tokenizer = Qwen3_5Tokenizer(
        vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]]
    )
    rows = [
        {"text": text, "ids": tokenizer(text, add_special_tokens=False).input_ids}
        for text in strings()
    ]
    (OUT / "strings.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    )


if __name__ == "__main__":
    main()
