#!/usr/bin/env python3
"""Draws docs/targets.svg: one answer, its match with the truth, and the two targets made from it,
token by token, by the program itself
(the stages tokenize and segment of `rematch-stages`).

usage: draw_targets.py build/release/bin/rematch-stages demo/model > docs/targets.svg
"""

import html
import json
import subprocess
import sys

TRUTH = [
    {"desc": "red circle", "bbox_2d": [100, 100, 300, 300]},
    {"desc": "blue square", "bbox_2d": [600, 100, 800, 300]},
]
ANSWER = [
    {"desc": "green circle", "bbox_2d": [400, 700, 500, 800]},
    {"desc": "red square", "bbox_2d": [110, 95, 290, 305]},
]
OPTIONS = {
    "candidate_top_k": 5,
    "maskiou_gate": 0.3,
    "maskiou_resolution": 256,
    "fp_cost": 1.0,
    "fn_cost": 1.0,
    "ot_cost": "l2",
    "ot_epsilon": 10.0,
    "ot_iters": 30,
}
WIDTH, MARGIN, LINE, BOX = 960, 16, 30, 22
SIDE = 220  # of the picture of the scene
READ, TEXT, COORD = "read", "text", "coord"


def stage(binary, model, name, value):
    answer = subprocess.run(
        [binary, "stage", name, "--model", model],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def answer_text(entries):
    def box(entry):
        return ", ".join(f'"<|coord_{value}|>"' for value in entry["bbox_2d"])

    return (
        "{"
        + ", ".join(
            f'"object_{i}": {{"desc": "{entry["desc"]}", "bbox_2d": [{box(entry)}]}}'
            for i, entry in enumerate(entries, 1)
        )
        + "}"
    )


def target_tokens(binary, model, policy):
    """@return ((text, kind) of every token of the target after the prompt, matched pairs)"""
    tokenized = stage(binary, model, "tokenize", {"text": answer_text(ANSWER)})
    segment = stage(
        binary,
        model,
        "segment",
        {
            "prompt_token_ids": [0],
            "response_token_ids": tokenized["token_ids"],
            "ground_truth": TRUTH,
            "options": OPTIONS | {"target_policy": policy},
        },
    )
    taught = {position: value for position, value, _ in segment["coord_slots"]}
    ids, labels = segment["token_ids"], segment["labels"]
    pieces = [stage(binary, model, "tokenize", {"token_ids": [token]})["text"] for token in ids[1:]]
    tokens = []
    for position, piece in enumerate(pieces, start=1):
        shown = piece.startswith("<|coord_")
        number = piece[len("<|coord_") : -len("|>")] if shown else ""
        if position in taught:
            tokens.append(
                (
                    f"{number}→{taught[position]}" if int(number) != taught[position] else number,
                    COORD,
                )
            )
        elif shown:
            tokens.append((number, READ))
        else:
            tokens.append((piece, READ if labels[position] == -100 else TEXT))
    return tokens, segment["pairs"]


def flow(tokens, top):
    """The tokens as boxes in lines, broken before each later object. @return (svg, height)"""
    parts, x, y = [], MARGIN, top
    for piece, kind in tokens:
        shown = piece.replace("\n", "↵")
        width = 7.3 * len(shown) + 7
        if x + width > WIDTH - MARGIN or shown.startswith(', "object'):
            x, y = MARGIN, y + LINE
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width - 1.5:.1f}" height="{BOX}" rx="3" '
            f'class="{kind}"/>'
            f'<text x="{x + 3:.1f}" y="{y + 15}" class="token on-{kind}" '
            f'xml:space="preserve">{html.escape(shown)}</text>'
        )
        x += width
    return parts, y + LINE - top


def scene(entries, x, y, name, pairs):
    """A picture of boxes with their names; `pairs` None: the truth, else the answer's (prediction,
    truth) pairs.
    """
    parts = [
        f'<text x="{x}" y="{y - 8}" class="head">{name}</text><rect x="{x}" y="{y}" '
        f'width="{SIDE}" height="{SIDE}" class="frame"/>'
    ]
    matched = {prediction for prediction, _ in pairs} if pairs is not None else None
    for index, entry in enumerate(entries):
        x0, y0, x1, y1 = (value * SIDE / 1000 for value in entry["bbox_2d"])
        kind = "truth" if matched is None else "matched" if index in matched else "false"
        parts.append(
            f'<rect x="{x + x0:.1f}" y="{y + y0:.1f}" width="{x1 - x0:.1f}" '
            f'height="{y1 - y0:.1f}" class="{kind}"/>'
            f'<text x="{x + x0:.1f}" y="{y + y1 + 14:.1f}" class="name '
            f'on-{kind}">{entry["desc"]}</text>'
        )
    return parts


def legend(x, y):
    rows = [
        ("matched", "matched with the truth (maskIoU at least 0.3)"),
        ("false", "matched with nothing: a false positive"),
        (READ, "token that is only read"),
        (TEXT, "token taught by cross-entropy"),
        (COORD, "coordinate: shown→taught (one number: both)"),
    ]
    parts = []
    for index, (kind, text) in enumerate(rows):
        parts.append(
            f'<rect x="{x}" y="{y + 28 * index}" width="26" height="16" rx="3" class="{kind}"/>'
            f'<text x="{x + 36}" y="{y + 13 + 28 * index}">{text}</text>'
        )
    return parts


def main():
    binary, model = sys.argv[1:3]
    append, pairs = target_tokens(binary, model, "append")
    rewrite, _ = target_tokens(binary, model, "rewrite")
    parts = scene(TRUTH, MARGIN, 34, "truth", None) + scene(
        ANSWER, MARGIN + SIDE + 24, 34, "the model's answer", pairs
    )
    parts += legend(2 * SIDE + 2 * MARGIN + 34, 74)
    y = 34 + SIDE + 40
    for name, tokens in (
        ("append: the answer continues after right and wrong objects alike", append),
        (
            "rewrite: the truth's own answer, read with the model's coordinates where they match",
            rewrite,
        ),
    ):
        parts.append(f'<text x="{MARGIN}" y="{y}" class="head">{name}</text>')
        boxes, height = flow(tokens, y + 12)
        parts += boxes
        y += 12 + height + 34
    style = (
        "svg{background:#fff}text{font:13px system-ui,sans-serif;fill:#333}"
        ".head{font-weight:600}.token{font:12px ui-monospace,monospace}"
        ".name{font-size:12px}"
        ".frame{fill:#f6f6f4;stroke:#999}.truth{fill:none;stroke:#1a7f37;stroke-width:2}"
        ".on-truth{fill:#1a7f37}"
        ".matched{fill:none;stroke:#2458c6;stroke-width:2}"
        ".on-matched{fill:#2458c6}.false{fill:none;stroke:#c62828;stroke-width:2}"
        ".on-false{fill:#c62828}.read{fill:#ececec}.on-read{fill:#777}"
        ".text{fill:#bfe5c4}.coord{fill:#ffd9a0}"
    )
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y - 20}" viewBox="0 0 '
        f'{WIDTH} {y - 20}" role="img" '
        f'aria-label="One answer and the two targets made from it"><style>{style}</style>'
    )
    print("\n".join(parts))
    print("</svg>")


if __name__ == "__main__":
    main()
