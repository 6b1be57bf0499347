"""The demonstration model's tokenizer.json: byte-level BPE in Qwen's layout, trained on the few
sentences that the model reads.

Its split pattern differs from Qwen's on purpose: the fixed pieces of an answer (`": {"desc": "`,
`", "bbox_2d": ["`, …) are one token
each and so is a phrase of words, so an object costs about 13 tokens instead of 32 and a
demonstration on two cores has time for more
steps. The pieces end where an entry ends and where a description begins, so the text that training
appends after a kept prefix is cut as
the model is used to. A description is one token: stage 2 never teaches inside a description
(BEHAVIOUR 7.5), and at this learning rate a
model this small forgets the second word of one within twenty steps.
"""

import re
from collections import Counter

from make_pages import MARK, NAMES

SPECIAL_TOKENS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
NUM_BINS = 1000

# Oniguruma, PCRE2 and Python's re (after replacing \p classes) agree on this subset.
PATTERN = (
    r'(?:, )?"object_|": \{"desc": "|", "(?:bbox_2d|poly)": \[+"|"\], \["|", "|"\]+\}'
    # The pieces of a stock answer in plain digits (BEHAVIOUR 19): `, ` parts the numbers.
    r'|```json\n\[\n\t\{"bbox_2d": \[|\], "label": "|"\},\n\t\{"bbox_2d": \[|"\}\n\]\n```|, |[{}]'
    r"| ?\p{L}+(?: \p{L}+)*|\p{N}| ?[^\s\p{L}\p{N}{}\"]+|\"|\s"
)
# For texts that are ASCII, where \p{L} and \p{N} are these classes; Python's re knows no other.
ASCII_PATTERN = (
    PATTERN.replace(r"[^\s\p{L}\p{N}{}\"]", r"[^\sA-Za-z0-9{}\"]")
    .replace(r"\p{L}", "[A-Za-z]")
    .replace(r"\p{N}", "[0-9]")
)

SYSTEM_PROMPT = "List the objects as JSON."
# Names of tests/shapes/make_scenes.py, so that the checkpoint of the tests can be made as well.
COLOURS = ("red", "green", "blue", "yellow", "purple", "orange")
SHAPES = ("circle", "square", "rectangle", "triangle")
USER_PROMPTS = ("Find every digit and mark.", "Find every shape.")  # pages, scenes


def byte_symbols():
    """The printable character of each byte, as in GPT-2: printable Latin-1 represents itself, the
    rest starts at U+0100.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable}
    symbols |= {byte: chr(256 + index) for index, byte in enumerate(rest)}
    return [symbols[byte] for byte in range(256)]


def corpus():
    """Texts whose pieces should become single tokens."""
    texts = [SYSTEM_PROMPT, *USER_PROMPTS, "system\n", "user\n", "assistant\n"]
    for name in (*NAMES, MARK, *(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)):
        texts.append(f'{{"object_1": {{"desc": "{name}", "bbox_2d": ["')
        texts.append(f'"]}}, "object_2": {{"desc": "{name}", "poly": [["')
        texts += ['", "', '"], ["', '"]]}', "}"]
        texts.append(
            f'```json\n[\n\t{{"bbox_2d": [, ], "label": "{name}"}},\n\t{{"bbox_2d": [], "label": '
            f'"{name}"}}\n]\n```'
        )
    return texts


def learn_merges(pieces, symbols):
    """Plain BPE: join the most frequent neighbours (ties: the smaller pair) until every piece is
    one token.
    """
    words = {
        tuple(symbols[byte] for byte in piece.encode()): count
        for piece, count in sorted(pieces.items())
    }
    merges = []
    while any(len(word) > 1 for word in words):
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        joined = {}
        for word, count in words.items():
            out = []
            for symbol in word:
                if out and (out[-1], symbol) == best:
                    out[-1] += symbol
                else:
                    out.append(symbol)
            joined[tuple(out)] = joined.get(tuple(out), 0) + count
        words = joined
    return merges


def build_tokenizer():
    """The content of tokenizer.json, and every token's id by its text."""
    symbols = byte_symbols()
    pieces = Counter(piece for text in corpus() for piece in re.findall(ASCII_PATTERN, text))
    merges = learn_merges(pieces, symbols)
    vocab = {symbol: index for index, symbol in enumerate(symbols)}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))

    added = []
    ids = dict(vocab)
    for text in SPECIAL_TOKENS + [f"<|coord_{k}|>" for k in range(NUM_BINS)]:
        ids[text] = len(ids)
        added.append(
            {
                "id": ids[text],
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": text in SPECIAL_TOKENS,
            }
        )
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": PATTERN},
                    "behavior": "Isolated",
                    "invert": False,
                },
                byte_level,
            ],
        },
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [f"{left} {right}" for left, right in merges],
        },
    }, ids
