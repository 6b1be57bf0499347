"""Writes tests/golden/text_saved_4x/: a tokenizer as transformers 4.5x saves it, and the ids that
its AutoTokenizer gives.

fast.json is the tokenizer.json of Qwen2TokenizerFast.save_pretrained; slow/ is what
Qwen2Tokenizer.save_pretrained writes: vocab.json,
merges.txt and added tokens in tokenizer_config.json. Both have added tokens with every flag
(text_saved.py) and special tokens.
Usage, with a Python that has transformers 4.5x (pip install --target DIR transformers==4.57.1):
PYTHONPATH=DIR python dev/goldens/text_saved_4x.py
"""

import json
import pathlib
import shutil
import tempfile

import tokenizers
import transformers
from transformers import AddedToken, AutoTokenizer, Qwen2Tokenizer, Qwen2TokenizerFast

OUT = pathlib.Path("tests/golden/text_saved_4x")
SOURCE = "tests/golden/tokenizer/tokenizer.json"
FLAGGED = [
    AddedToken("word", single_word=True),
    AddedToken("<one>", single_word=True, special=True, normalized=False),
    AddedToken("ls", lstrip=True),
    AddedToken("rs", rstrip=True, normalized=False),
    AddedToken("both", lstrip=True, rstrip=True, single_word=True),
    AddedToken("é", normalized=True, single_word=True),
    AddedToken("漢", single_word=True),
]
TEXTS = [
    "",
    " ",
    "a",
    "word",
    "words",
    "a word.",
    "_word",
    "word word",
    "word\u0301",
    "word²",
    "(word)",
    "word<|im_end|>word",
    "a<one>",
    "- <one> -",
    "ls  ls",
    "xls y",
    "rs   x",
    " rs\n\nx",
    "a both b",
    "aboth b",
    "both\u3000",
    "é",
    "e\u0301",
    "caf é",
    "漢字",
    "漢 字",
    "字漢",
    "{\"object_1\": {\"desc\": \"word\"}}",
    "<|coord_5|> word <|coord_6|>",
    "<|vision_start|><|image_pad|><|vision_end|>",
]


def with_tokens(tokenizer):
    tokenizer.add_tokens(
        [
            AddedToken(f"<|{t}|>", special=True, normalized=False)
            for t in ("im_start", "im_end", "coord_5", "coord_6")
        ]
    )
    tokenizer.add_tokens(FLAGGED)
    tokenizer.add_special_tokens(
        {"additional_special_tokens": ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>"]}
    )
    return tokenizer


def main():
    assert transformers.__version__.startswith("4.5"), transformers.__version__
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "slow").mkdir(parents=True)
    model = json.load(open(SOURCE, encoding="utf-8"))["model"]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "vocab.json").write_text(
            json.dumps(model["vocab"], ensure_ascii=False), encoding="utf-8"
        )
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        (directory / "merges.txt").write_text(
            "#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8"
        )
        files = (str(directory / "vocab.json"), str(directory / "merges.txt"))
        with_tokens(Qwen2TokenizerFast(*files)).save_pretrained(directory / "fast")
        with_tokens(Qwen2Tokenizer(*files)).save_pretrained(directory / "slow")
        shutil.copy(directory / "fast/tokenizer.json", OUT / "fast.json")
        for file in (
            "vocab.json",
            "merges.txt",
            "added_tokens.json",
            "special_tokens_map.json",
            "tokenizer_config.json",
        ):
            shutil.copy(directory / "slow" / file, OUT / "slow" / file)
        with open(OUT / "rows.jsonl", "w", encoding="utf-8") as file:
            for saved, golden in (("fast", "fast.json"), ("slow", "slow")):
                tokenizer = AutoTokenizer.from_pretrained(directory / saved)
                for text in TEXTS:
                    plain, special = (
                        tokenizer.encode(text, add_special_tokens=on) for on in (False, True)
                    )
                    file.write(
                        json.dumps(
                            {"tokenizer": golden, "text": text, "plain": plain, "special": special},
                            separators=(",", ":"),
                        )
                        + "\n"
                    )
    (OUT.parent / "text_saved_4x.how").write_text(
        "PYTHONPATH=DIR python dev/goldens/text_saved_4x.py\ntokenizers "
        f"{tokenizers.__version__}, transformers {transformers.__version__}\n"
    )


if __name__ == "__main__":
    main()
