#!/usr/bin/env python3
"""A slow second reading of the E-step's rules (parse, match, target): written for differential
tests, sharing no code with src/.

usage: estep_reference.py answers COUNT SEED         random answers, whole and broken, as input
lines of `rematch stage parse`
       estep_reference.py scenes COUNT SEED          the same with prompts, ground truth and
       options, for `stage segment`
       estep_reference.py parse|segment < lines      the expected output of each line, with its id
       estep_reference.py compare EXPECTED FOUND     differences between two such outputs
       estep_reference.py golden parse|segment COUNT SEED   {"id", "input", "expect"} lines of
       random inputs, without rounding ties
The parser walks bytes with an explicit stack; masks come from pycocotools, assignments from scipy,
transport from numpy.
"""

import json
import os
import random
import sys

import numpy as np
from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER_JSON = os.path.join(HERE, "..", "..", "tests", "golden", "tokenizer", "tokenizer.json")


class Vocab:
    def __init__(self):
        self.tokenizer = Tokenizer.from_file(TOKENIZER_JSON)
        spec = json.load(open(TOKENIZER_JSON, encoding="utf-8"))
        printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
        chars = {b: chr(b) for b in printable}
        extra = 0
        for b in range(256):
            if b not in chars:
                chars[b] = chr(256 + extra)
                extra += 1
        byte_of = {c: b for b, c in chars.items()}
        self.bytes_of = {
            i: bytes(byte_of[c] for c in entry) for entry, i in spec["model"]["vocab"].items()
        }
        self.byte_id = {piece[0]: i for i, piece in self.bytes_of.items() if len(piece) == 1}
        for added in spec["added_tokens"]:
            self.bytes_of[added["id"]] = added["content"].encode()
        content_id = {added["content"]: added["id"] for added in spec["added_tokens"]}
        self.bin_of = {content_id[f"<|coord_{k}|>"]: k for k in range(1000)}
        self.stop = {content_id["<|im_end|>"], content_id["<|endoftext|>"]}
        self.im_end = content_id["<|im_end|>"]
        self.contents = [a["content"] for a in spec["added_tokens"]]

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids


# ---- parse
# --------------------------------------------------------------------------------------------------


class Stop(Exception):
    """Reading ends: "truncated" or "malformed"."""


class Machine:
    """Eats one byte at a time; what is complete so far is in `entries` as (key, value, end of
    value).
    """

    def __init__(self):
        self.entries, self.stack, self.mode = [], [], "top"
        self.open_end = None  # offset behind the opening brace
        self.entry_open = False
        self.done = False
        self.at = 0
        self.utf8 = None  # (bytes so far) of an unfinished character
        self.buffer = None  # of the string or scalar being read
        self.start = 0

    def feed(self, byte):
        if self.utf8 is not None or byte >= 0x80:
            self.feed_utf8(byte)
        else:
            self.step(chr(byte))
        self.at += 1

    def feed_utf8(self, byte):
        sequence = (self.utf8 or b"") + bytes([byte])
        try:
            char = sequence.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                raise Stop("malformed") from None
            self.utf8 = sequence
            return
        self.utf8 = None
        self.step(char)

    def bad(self):
        raise Stop("malformed")

    def step(self, c):
        getattr(self, "in_" + self.mode)(c)

    # A frame: {"kind", "value", "start", "key"}; depth of a value = number of frames around it.
    def in_top(self, c):
        if c in " \t\n\r":
            return
        if c != "{":
            self.bad()
        self.open_end = self.at + 1
        self.stack.append({"kind": "object", "keys": [], "items": [], "start": self.at})
        self.mode = "key_or_end"

    def begin_key(self):
        if len(self.stack) == 1:
            self.entry_open = True
        self.buffer, self.mode, self.start, self.is_key = "", "string", self.at, True

    def in_key_or_end(self, c):
        if c in " \t\n\r":
            return
        if c == "}":
            return self.close("object")
        if c != '"':
            self.bad()
        self.begin_key()

    def in_key(self, c):
        if c in " \t\n\r":
            return
        if c != '"':
            self.bad()
        self.begin_key()

    def in_colon(self, c):
        if c in " \t\n\r":
            return
        if c != ":":
            self.bad()
        self.mode = "value"

    def in_value_or_end(self, c):
        if c == "]":
            return self.close("array")
        self.in_value(c)

    def in_value(self, c):
        if c in " \t\n\r":
            return
        if len(self.stack) > 128:
            self.bad()
        if c == '"':
            self.buffer, self.mode, self.start, self.is_key = "", "string", self.at, False
        elif c == "{":
            self.stack.append({"kind": "object", "keys": [], "items": [], "start": self.at})
            self.mode = "key_or_end"
        elif c == "[":
            self.stack.append({"kind": "array", "items": [], "start": self.at})
            self.mode = "value_or_end"
        else:
            self.buffer, self.mode, self.start = "", "scalar", self.at
            self.in_scalar(c)

    WORDS = ("true", "false", "null")

    @staticmethod
    def number_ok(text, whole):
        """Is `text` a number (whole) or the beginning of one?"""
        import re

        full = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
        part = r"-?((0|[1-9][0-9]*)(\.[0-9]*)?)?|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([+-]?[0-9]*)?)?"
        return re.fullmatch(full if whole else part, text, re.ASCII) is not None

    def in_scalar(self, c):
        if self.buffer and c in " \t\n\r,}]":
            if not (self.buffer in self.WORDS or self.number_ok(self.buffer, True)):
                self.bad()
            self.finish({"kind": "scalar", "start": self.start}, self.at)
            return self.step(c)
        self.buffer += c
        if not (
            any(word.startswith(self.buffer) for word in self.WORDS)
            or self.number_ok(self.buffer, False)
        ):
            self.bad()

    def in_string(self, c):
        if c == '"':
            if self.is_key:
                self.stack[-1]["pending"] = self.buffer
                self.mode = "colon"
            else:
                self.finish(
                    {"kind": "string", "text": self.buffer, "start": self.start}, self.at + 1
                )
        elif c == "\\":
            self.mode = "escape"
        elif c < " ":
            self.bad()
        else:
            self.buffer += c

    def in_escape(self, c):
        if c == "u":
            self.hex, self.high, self.mode = "", None, "hex"
            return
        simple = {
            '"': '"',
            "\\": "\\",
            "/": "/",
            "b": "\b",
            "f": "\f",
            "n": "\n",
            "r": "\r",
            "t": "\t",
        }
        if c not in simple:
            self.bad()
        self.buffer += simple[c]
        self.mode = "string"

    def in_hex(self, c):
        if c not in "0123456789abcdefABCDEF":
            self.bad()
        self.hex += c
        if len(self.hex) < 4:
            return
        unit = int(self.hex, 16)
        if self.high is not None:
            if not 0xDC00 <= unit <= 0xDFFF:
                self.bad()
            self.buffer += chr(0x10000 + ((self.high - 0xD800) << 10) + unit - 0xDC00)
            self.mode = "string"
        elif 0xDC00 <= unit <= 0xDFFF:
            self.bad()
        elif 0xD800 <= unit <= 0xDBFF:
            self.high, self.mode = unit, "low_backslash"
        else:
            self.buffer += chr(unit)
            self.mode = "string"

    def in_low_backslash(self, c):
        if c != "\\":
            self.bad()
        self.mode = "low_u"

    def in_low_u(self, c):
        if c != "u":
            self.bad()
        self.hex, self.mode = "", "hex"

    def in_comma_or_end(self, c):
        if c in " \t\n\r":
            return
        kind = self.stack[-1]["kind"]
        if c == ",":
            self.mode = "key" if kind == "object" else "value"
        elif c == ("}" if kind == "object" else "]"):
            self.close(kind)
        else:
            self.bad()

    def close(self, kind):
        frame = self.stack.pop()
        assert frame["kind"] == kind
        if not self.stack:
            self.done = True
            return
        self.finish(frame, self.at + 1)

    def finish(self, value, end):
        value["end"] = end
        frame = self.stack[-1]
        frame["items"].append(value)
        if frame["kind"] == "object":
            frame["keys"].append(frame.pop("pending"))
            if len(self.stack) == 1:
                self.entries.append((frame["keys"][-1], value))
                self.entry_open = False
        self.mode = "comma_or_end"


def index_of(key):
    if not key.startswith("object_"):
        return None
    digits = key[len("object_") :]
    if not digits or any(d not in "0123456789" for d in digits) or int(digits) > 999999999:
        return None
    return int(digits)


def judge(key, value, exact):
    """The reported object, or None. `exact` maps (begin, end) of a token to its position and id."""
    index = index_of(key)
    if index is None or value["kind"] != "object" or len(value["keys"]) != 2:
        return None
    members = dict(zip(value["keys"], value["items"]))
    if set(members) not in ({"desc", "bbox_2d"}, {"desc", "poly"}):
        return None
    name = "poly" if "poly" in members else "bbox_2d"
    desc, geometry = members["desc"], members[name]
    if desc["kind"] != "string" or not desc["text"].strip() or geometry["kind"] != "array":
        return None
    items = geometry["items"]
    if all(i["kind"] == "string" for i in items):
        strings = items
    elif all(
        i["kind"] == "array"
        and len(i["items"]) == 2
        and all(s["kind"] == "string" for s in i["items"])
        for i in items
    ):
        strings = [s for i in items for s in i["items"]]
    else:
        return None
    if not (
        len(strings) == 4 if name == "bbox_2d" else len(strings) >= 6 and len(strings) % 2 == 0
    ):
        return None
    bins, places = [], []
    for string in strings:
        token = exact.get((string["start"] + 1, string["end"] - 1))
        if token is None or token[1] not in VOCAB.bin_of:
            return None
        places.append(token[0])
        bins.append(VOCAB.bin_of[token[1]])
    return {
        "key": key,
        "index": index,
        "desc": desc["text"].strip(),
        "geometry": name,
        "bins": bins,
        "coord_token_indices": places,
    }


def parse(ids):
    for i, token in enumerate(ids):
        if token in VOCAB.stop:
            ids = ids[:i]
            break
    machine, status, data, exact = Machine(), "truncated", b"", {}
    try:
        for i, token in enumerate(ids):
            if machine.done:
                break
            if token not in VOCAB.bytes_of:
                raise Stop("malformed")
            piece = VOCAB.bytes_of[token]
            exact[(len(data), len(data) + len(piece))] = (i, token)
            data += piece
            for byte in piece:
                if not machine.done:
                    machine.feed(byte)
    except Stop as stop:
        status = str(stop)
    if machine.done:
        status = "complete"
    objects, indices, dropped = [], [], int(machine.entry_open)
    for key, value in machine.entries:
        if index_of(key) is not None:
            indices.append(index_of(key))
        found = judge(key, value, exact)
        if found is None:
            dropped += 1
        else:
            objects.append(found)
    if machine.open_end is None:
        prefix_ids, prefix = VOCAB.encode("{"), b"{"
    else:
        cut = machine.entries[-1][1]["end"] if machine.entries else machine.open_end
        prefix, prefix_ids, begin = data[:cut], [], 0
        for token in ids:
            if begin >= cut:
                break
            piece = VOCAB.bytes_of[token]
            if begin + len(piece) <= cut:
                prefix_ids.append(token)
            else:
                kept = piece[: cut - begin]
                try:
                    prefix_ids += VOCAB.encode(kept.decode("utf-8"))
                except UnicodeDecodeError:
                    prefix_ids += [VOCAB.byte_id[b] for b in kept]
            begin += len(piece)
    return {
        "response_token_ids": ids,
        "prefix_token_ids": prefix_ids,
        "prefix_text": prefix.decode("utf-8"),
        "objects": objects,
        "max_object_index": max(indices) if indices else None,
        "dropped_invalid": dropped,
        "status": status,
    }


# ---- match and target
# --------------------------------------------------------------------------------------------------


def aabb(points):
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return min(xs), min(ys), max(xs), max(ys)


def corners(kind, bins):
    if kind == "bbox_2d":
        x1, y1, x2, y2 = bins
        return [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]
    return list(zip(bins[::2], bins[1::2]))


def fill(kind, bins, resolution):
    from pycocotools import mask as coco

    points = corners(kind, bins)
    if kind == "bbox_2d":
        x1, y1, x2, y2 = aabb(points)
        points = [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]
    flat = [float(min(max(v, 0), 999)) * resolution / 1000.0 for p in points for v in p]
    return coco.decode(coco.frPyObjects([flat], resolution, resolution))[:, :, 0].astype(bool)


def box_iou(a, b, plus):
    w = min(a[2], b[2]) - max(a[0], b[0]) + plus
    h = min(a[3], b[3]) - max(a[1], b[1]) + plus
    inter = max(w, 0) * max(h, 0)
    union = sum((r[2] - r[0] + plus) * (r[3] - r[1] + plus) for r in (a, b)) - inter
    return inter / union if union else 0.0


def match(predictions, truth, options):
    from scipy.optimize import linear_sum_assignment

    num_p, num_g = len(predictions), len(truth)
    if not num_p or not num_g:
        return []
    resolution = options["maskiou_resolution"]
    costs = np.zeros((num_p + num_g,) * 2)
    costs[:num_p, :num_g], costs[:num_p, num_g:], costs[num_p:, :num_g] = (
        1e6,
        options["fp_cost"],
        options["fn_cost"],
    )
    masks_p = [fill(*p, resolution) for p in predictions]
    masks_g = [fill(*g, resolution) for g in truth]
    for p, prediction in enumerate(predictions):
        box = aabb(corners(*prediction))
        boxes = [aabb(corners(*g)) for g in truth]
        ious = [box_iou(box, b, 0) for b in boxes]
        if max(ious) == 0:
            centre = lambda b: ((b[0] + b[2]) / 2, (b[1] + b[3]) / 2)
            rank = [
                (centre(b)[0] - centre(box)[0]) ** 2 + (centre(b)[1] - centre(box)[1]) ** 2
                for b in boxes
            ]
        else:
            rank = [-i for i in ious]
        for g in sorted(range(num_g), key=lambda g: (rank[g], g))[: options["candidate_top_k"]]:
            a, b = masks_p[p], masks_g[g]
            iou = (
                (a & b).sum() / (a | b).sum() if a.any() and b.any() else box_iou(box, boxes[g], 1)
            )
            if iou >= options["maskiou_gate"]:
                costs[p, g] = 1 - iou
    rows, columns = linear_sum_assignment(costs)
    return [
        (int(r), int(c))
        for r, c in zip(rows, columns)
        if r < num_p and c < num_g and costs[r, c] < 5e5
    ]


def targets(prediction, truth, options):
    if prediction[0] == truth[0] == "bbox_2d":
        return list(truth[1])
    a, b = np.array(corners(*prediction), float), np.array(corners(*truth), float)
    difference = a[:, None, :] - b[None, :, :]
    cost = (
        np.abs(difference).sum(-1)
        if options["ot_cost"] == "l1"
        else np.sqrt((difference**2).sum(-1))
    )
    kernel = np.exp(np.clip(-cost / options["ot_epsilon"], -50, 50))
    u, v = np.ones(len(a)), np.ones(len(b))
    for _ in range(options["ot_iters"]):
        u = (1 / len(a)) / (kernel @ v)
        v = (1 / len(b)) / (kernel.T @ u)
    plan = u[:, None] * kernel * v[None, :]
    moved = (plan / plan.sum(1, keepdims=True)) @ b
    bins = np.clip(np.round(moved), 0, 999).astype(int)
    margin = float(np.abs(moved - np.floor(moved) - 0.5).min())  # how near to a tie of rounding
    if prediction[0] == "bbox_2d":
        flat = [bins[:, 0].min(), bins[:, 1].min(), bins[:, 0].max(), bins[:, 1].max()]
    else:
        flat = bins.reshape(-1)
    TIES.append(margin)
    return [int(x) for x in flat]


TIES = []
DEFAULTS = {
    "candidate_top_k": 10,
    "maskiou_gate": 0.3,
    "maskiou_resolution": 256,
    "fp_cost": 1.0,
    "fn_cost": 1.0,
    "ot_cost": "l2",
    "ot_epsilon": 10.0,
    "ot_iters": 30,
}


def object_text(index, desc, kind, bins):
    token = lambda v: f"<|coord_{v}|>"
    value = (
        [token(v) for v in bins]
        if kind == "bbox_2d"
        else [[token(x), token(y)] for x, y in zip(bins[::2], bins[1::2])]
    )
    return f'"object_{index}": ' + json.dumps({"desc": desc, kind: value}, ensure_ascii=False)


def segment(line):
    options = {**DEFAULTS, **line.get("options", {})}
    parsed = parse(line["response_token_ids"])
    predictions = [(o["geometry"], o["bins"]) for o in parsed["objects"]]
    truth = []
    for item in line["ground_truth"]:
        kind = "poly" if "poly" in item else "bbox_2d"
        truth.append((kind, item[kind]))
    pairs = match(predictions, truth, options)
    prompt = line["prompt_token_ids"]
    ids = prompt + parsed["prefix_token_ids"]
    slots = []
    TIES.clear()
    for p, g in pairs:
        for place, value in zip(
            parsed["objects"][p]["coord_token_indices"], targets(predictions[p], truth[g], options)
        ):
            slots.append([len(prompt) + place, value, "prefix"])
    missing = [g for g in range(len(truth)) if g not in {g for _, g in pairs}]
    first = 1 if parsed["max_object_index"] is None else parsed["max_object_index"] + 1
    texts = [
        object_text(first + i, line["ground_truth"][g]["desc"].strip(), *truth[g])
        for i, g in enumerate(missing)
    ]
    append = (
        (", " if texts and not parsed["prefix_text"].endswith("{") else "") + ", ".join(texts) + "}"
    )
    labels = [-100] * len(ids)
    encoding = VOCAB.tokenizer.encode(append, add_special_tokens=False)
    # Character spans of desc values, found by walking the text as it was written.
    spans, at = [], append.find('{"desc": "')
    while at >= 0:
        begin = end = at + len('{"desc": "')
        while append[end] != '"':
            end += 2 if append[end] == "\\" else 1
        spans.append((begin, end))
        at = append.find('{"desc": "', end)
    for token, (begin, end) in zip(encoding.ids, encoding.offsets):
        in_desc = any(begin < e and b < end for b, e in spans)
        if token in VOCAB.bin_of and not in_desc:
            slots.append([len(ids), VOCAB.bin_of[token], "append"])
        labels.append(-100 if in_desc or token in VOCAB.bin_of else token)
        ids = ids + [token]
    return {
        "token_ids": ids + [VOCAB.im_end],
        "labels": labels + [VOCAB.im_end],
        "coord_slots": sorted(slots),
        "prompt_len": len(prompt),
        "prefix_len": len(parsed["prefix_token_ids"]),
        "append_len": len(encoding.ids),
        "append_text": append,
        "pairs": [list(p) for p in pairs],
        "false_negatives": missing,
        "encoded_len": len(ids) + 1,
        "nearest_tie": min(TIES, default=1.0),
    }


# ---- random inputs
# --------------------------------------------------------------------------------------------------

DESCS = [
    "cat",
    "red car",
    "飞机",
    "😀 sticker",
    'bottle "A"',
    "back\\slash",
    "é",
    "ÿ z",
    "a/b",
    "Ω≈ç",
    "ключ",
    "한국어",
    "x" * 30,
]
WEIRD_DESCS = [
    " ",
    "",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\udc00",
    "near <|coord_9|>",
    "\\n",
    "e\u0301",
    "\t",
    "\x7f",
    "\\u001c",
    "\u00a0",
    "\\/",
]


def random_geometry(rng, tiny=False):
    size = 3 if tiny else rng.choice([3, 20, 80, 300])
    x, y = rng.randrange(1000 - size), rng.randrange(1000 - size)
    if rng.random() < 0.6:
        box = [x, y, x + rng.randrange(size), y + rng.randrange(size)]
        if rng.random() < 0.1:
            box = [box[2], box[3], box[0], box[1]]
        return "bbox_2d", box
    return "poly", [
        v
        for _ in range(rng.randrange(3, 8))
        for v in (x + rng.randrange(size), y + rng.randrange(size))
    ]


def jitter(rng, geometry):
    kind, bins = geometry
    if rng.random() < 0.3 and kind == "bbox_2d":
        x1, y1, x2, y2 = bins
        kind, bins = "poly", [x1, y1, x2, y1, x2, y2, x1, y2]
    elif rng.random() < 0.3:
        kind, bins = "bbox_2d", [min(bins[::2]), min(bins[1::2]), max(bins[::2]), max(bins[1::2])]
    return kind, [min(999, max(0, v + rng.randrange(-4, 5))) for v in bins]


def answer_text(rng, objects):
    text = rng.choice(["{"] * 30 + [" {", "{ ", "\n{", "```json\n{", "[{"])
    number = rng.choice([1, 1, 1, 1, 0, 5, 999999990])
    parts = []
    for kind, bins in objects:
        desc = (
            json.dumps(rng.choice(DESCS), ensure_ascii=False)[1:-1]
            if rng.random() < 0.92
            else rng.choice(WEIRD_DESCS)
        )
        key = (
            f"object_{number}"
            if rng.random() < 0.9
            else rng.choice(
                [
                    "object_01",
                    "obj_1",
                    "object_",
                    "object_1000000000",
                    "object_x",
                    "\\u006fbject_4",
                    "",
                    "é",
                ]
            )
        )
        entry = (
            object_text(0, "DESC", kind, bins)
            .replace('"object_0"', f'"{key}"')
            .replace('"DESC"', f'"{desc}"')
        )
        if kind == "poly" and rng.random() < 0.2:
            entry = entry.replace("], [", ", ").replace("[[", "[").replace("]]", "]")
        if rng.random() < 0.04:
            entry = f'"{key}": ' + rng.choice(
                [
                    "1",
                    "-0.5e3",
                    "true",
                    "null",
                    "[]",
                    "{}",
                    '"x"',
                    "01",
                    "1.",
                    "NaN",
                    "tru",
                    "[1,]",
                    '{"a": [1, {"b": 2}]}',
                ]
            )
        parts.append(entry)
        number += rng.choice([1, 1, 1, 2, 0])
    return (
        text
        + rng.choice([", "] * 5 + [",", " ,\n"]).join(parts)
        + rng.choice(["}"] * 20 + ["", " }", "} ", "}}", ",}", "]"])
    )


def mutate_text(rng, text):
    chars = list(text)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2, 5])):
        if not chars:
            break
        at = rng.randrange(len(chars))
        what = rng.random()
        if what < 0.4:
            del chars[at : at + rng.choice([1, 1, 2, 5])]
        else:
            chars[at : at + (what < 0.6)] = rng.choice(
                list('{}[]",:\\0123456789eE+-. \n\t\x01u')
                + [
                    "é",
                    "😀",
                    "null",
                    "true",
                    "<|coord_5|>",
                    '"x": 1, ',
                    "\\u",
                    "<|im_start|>",
                    "object_",
                    "\u00a0",
                    "\ufeff",
                ]
            )
    return "".join(chars)


def mutate_ids(rng, ids):
    ids = list(ids)
    for _ in range(rng.choice([0, 0, 0, 0, 0, 1, 1, 2, 4])):
        if not ids:
            break
        at = rng.randrange(len(ids))
        what = rng.random()
        if what < 0.25:
            del ids[at]
        elif what < 0.5:
            ids[at : at + 1] = [VOCAB.byte_id[b] for b in VOCAB.bytes_of.get(ids[at], b"?")]
        elif what < 0.75:
            ids.insert(
                at,
                VOCAB.byte_id[
                    rng.choice([rng.randrange(256), rng.randrange(128, 256), rng.randrange(32)])
                ],
            )
        else:
            ids.insert(
                at, rng.choice([rng.randrange(1400), 100000, -1, rng.choice(sorted(VOCAB.stop))])
            )
    if rng.random() < 0.35:
        ids = ids[: rng.randrange(len(ids) + 1)]
    return ids


def random_response(rng, objects):
    ids = VOCAB.encode(mutate_text(rng, answer_text(rng, objects)))
    if rng.random() < 0.3:
        ids.append(VOCAB.im_end)
    return mutate_ids(rng, ids)


def write_answers(count, seed):
    rng = random.Random(seed)
    for i in range(count):
        objects = [random_geometry(rng) for _ in range(rng.choice([0, 1, 1, 2, 3, 5]))]
        if rng.random() < 0.01:
            depth = rng.randrange(120, 135)
            text = (
                '{"a": '
                + "[" * depth
                + rng.choice(["", "1", '"x"', "{}"])
                + "]" * rng.choice([depth, depth - 1, 0])
                + "}"
            )
            ids = VOCAB.encode(text)
        else:
            ids = random_response(rng, objects)
        print(json.dumps({"id": i, "response_token_ids": ids}))


def write_scenes(count, seed):
    rng = random.Random(seed)
    for i in range(count):
        truth = [
            random_geometry(rng, tiny=rng.random() < 0.1)
            for _ in range(rng.choice([0, 1, 2, 3, 5, 8]))
        ]
        predicted = [jitter(rng, g) for g in truth if rng.random() < 0.7] + [
            random_geometry(rng) for _ in range(rng.choice([0, 0, 1, 2]))
        ]
        rng.shuffle(predicted)
        ids = (
            random_response(rng, predicted)
            if rng.random() < 0.4
            else VOCAB.encode(answer_text(random.Random(7), predicted))
        )
        options = {
            "candidate_top_k": rng.choice([1, 2, 10]),
            "maskiou_gate": rng.choice([0.0, 0.3, 0.5]),
            "maskiou_resolution": rng.choice([64, 256]),
            "fp_cost": rng.choice([0.05, 0.5, 1.0]),
            "fn_cost": rng.choice([0.05, 1.0]),
            "ot_cost": rng.choice(["l1", "l2"]),
            "ot_epsilon": rng.choice([1.0, 10.0, 25.0, 100.0]),
            "ot_iters": rng.choice([1, 3, 30]),
        }
        print(
            json.dumps(
                {
                    "id": i,
                    "prompt_token_ids": [361, 84, 82, 366, 364, 198],
                    "response_token_ids": ids,
                    "ground_truth": [
                        {"desc": rng.choice(DESCS), kind: bins} for kind, bins in truth
                    ],
                    "options": {k: v for k, v in options.items() if rng.random() < 0.7},
                },
                ensure_ascii=False,
            )
        )


def compare(expected_path, found_path):
    expected = [json.loads(line) for line in open(expected_path, encoding="utf-8")]
    found = [json.loads(line) for line in open(found_path, encoding="utf-8")]
    assert len(expected) == len(found), (len(expected), len(found))
    bad = near_ties = 0
    for a, b in zip(expected, found):
        wrong = [k for k in a if k != "nearest_tie" and (k not in b or a[k] != b[k])]
        if wrong == ["coord_slots"] and a.get("nearest_tie", 1.0) < 1e-9:
            near_ties += 1  # an exact tie of rounding, decided by the order of sums
            continue
        if wrong:
            bad += 1
            if bad <= 10:
                print(
                    a["id"],
                    {k: (str(a[k])[:300], str(b.get(k, b.get("error")))[:300]) for k in wrong[:3]},
                )
    print(f"{len(expected) - bad - near_ties} of {len(expected)} agree, {near_ties} rounding ties")
    return bad


def write_golden(stage, count, seed):
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        (write_answers if stage == "parse" else write_scenes)(count, seed)
    for line in text.getvalue().splitlines():
        value = json.loads(line)
        number = value.pop("id")
        result = parse(value["response_token_ids"]) if stage == "parse" else segment(value)
        if result.pop("nearest_tie", 1.0) > 1e-6:
            print(
                json.dumps(
                    {"id": number, "input": value, "expect": result},
                    ensure_ascii=False,
                    separators=(",", ":"),
                )
            )


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if command in ("answers", "scenes"):
        (write_answers if command == "answers" else write_scenes)(
            int(sys.argv[2]), int(sys.argv[3])
        )
    elif command in ("parse", "segment"):
        for line in sys.stdin:
            value = json.loads(line)
            result = parse(value["response_token_ids"]) if command == "parse" else segment(value)
            print(json.dumps({"id": value["id"], **result}, ensure_ascii=False))
    elif command == "golden":
        write_golden(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif command == "compare":
        sys.exit(1 if compare(sys.argv[2], sys.argv[3]) else 0)
    else:
        sys.exit(__doc__)


VOCAB = Vocab()
main()
