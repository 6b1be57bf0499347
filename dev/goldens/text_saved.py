"""Writes tests/golden/text_saved/: tokenizers as transformers 5 and `tokenizers` save them, and ids
with and without special tokens.

All have the vocabulary of tests/golden/tokenizer; they differ in post-processor and added tokens.
Usage: .venv/bin/python dev/goldens/text_saved.py
"""

import json
import pathlib
import tempfile

import tokenizers
import transformers
from tokenizers import Tokenizer, processors
from transformers import AddedToken, AutoTokenizer
from transformers.models.qwen2 import Qwen2Tokenizer

OUT = pathlib.Path("tests/golden/text_saved")
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
    "sword",
    "a word.",
    "_word",
    "word_",
    "wordword",
    "word word",
    "5word",
    "éword",
    "word\u0301",
    "word\u200d",
    "word\u24b6",
    "word²",
    "(word)",
    "word<|im_end|>word",
    "<one>",
    "a<one>",
    "<one>b",
    "- <one> -",
    "<one><one>",
    "ls  ls",
    "  ls",
    "xls y",
    "rs   x",
    " rs\n\nx",
    "a both b",
    "aboth b",
    "  both  ",
    "both\u3000",
    "é",
    "e\u0301",
    "éa",
    "caf é",
    "漢",
    "漢字",
    "漢 字",
    "字漢",
    "\U00010d40word",
    "{\"object_1\": {\"desc\": \"word\"}}",
    "<|coord_5|> word <|coord_6|>",
]


def post_processors(start, end):
    template = processors.TemplateProcessing(
        single="<|im_start|> <|im_end|> $A <|im_end|>",
        pair="$A $B",
        special_tokens=[("<|im_start|>", start), ("<|im_end|>", end)],
    )
    return {
        "template": template,
        "identity": processors.TemplateProcessing(single="$A", pair="$A $B"),
        "sequence": processors.Sequence([processors.ByteLevel(trim_offsets=False), template]),
        "bert": processors.BertProcessing(("<|im_end|>", end), ("<|im_start|>", start)),
        "roberta": processors.RobertaProcessing(("<|im_end|>", end), ("<|im_start|>", start)),
        "byte_level": processors.ByteLevel(),
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    start, end = (
        Tokenizer.from_file(SOURCE).token_to_id(t) for t in ("<|im_start|>", "<|im_end|>")
    )
    for name, processor in post_processors(start, end).items():
        tokenizer = Tokenizer.from_file(SOURCE)
        tokenizer.post_processor = processor
        content = json.loads(tokenizer.to_str())
        content["added_tokens"] = [
            t for t in content["added_tokens"] if "coord" not in t["content"]
        ]
        (OUT / f"{name}.json").write_text(
            json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
        )
    model = json.load(open(SOURCE, encoding="utf-8"))["model"]
    with tempfile.TemporaryDirectory() as directory:
        saved = Qwen2Tokenizer(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]])
        saved.add_tokens(
            [
                AddedToken(f"<|{t}|>", special=True, normalized=False)
                for t in ("im_start", "im_end", "coord_5", "coord_6")
            ]
        )
        saved.add_tokens(FLAGGED)
        saved.save_pretrained(directory)
        AutoTokenizer.from_pretrained(directory).save_pretrained(directory)
        (OUT / "flags.json").write_bytes((pathlib.Path(directory) / "tokenizer.json").read_bytes())
    with open(OUT / "rows.jsonl", "w", encoding="utf-8") as file:
        for path in sorted(OUT.glob("*.json")):
            tokenizer = Tokenizer.from_file(str(path))
            for text in TEXTS:
                plain, special = (
                    tokenizer.encode(text, add_special_tokens=on).ids for on in (False, True)
                )
                file.write(
                    json.dumps(
                        {"tokenizer": path.name, "text": text, "plain": plain, "special": special},
                        separators=(",", ":"),
                    )
                    + "\n"
                )
    (OUT.parent / "text_saved.how").write_text(
        f".venv/bin/python dev/goldens/text_saved.py\ntokenizers {tokenizers.__version__}, "
        f"transformers {transformers.__version__}\n"
    )


if __name__ == "__main__":
    main()
