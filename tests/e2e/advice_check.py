#!/usr/bin/env python3
"""Follows the advice of refusals and warnings: the option, key or command that a message names must
change the outcome.

usage: advice_check.py REMATCH
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = f"""\
global_max_length: 1024
model: {{model: {ROOT}/tests/golden/model/tiny_tied, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: 1, per_device_train_batch_size: 2,
  gradient_accumulation_steps: 1, eval_strategy: "no", report_to: none}}
custom: {{trainer_variant: sft, train_jsonl: good.jsonl}}
"""
VOC = (
    "<annotation><filename>0.png</filename><object><name>{name}</name><bndbox><xmin>{x0}</xmin>"
    "<ymin>5</ymin><xmax>30</xmax><ymax>30</ymax></bndbox></object></annotation>"
)
# Command, pattern of its advice in the output on one line, and the command that follows it, where
# {0} is the pattern's first group. The text of the last column, or else the advice, must be gone.
CASES = (
    ("data from-yolo unnamed --out o", r"with (--names) cat,dog", "{first} {0} cat,dog", ""),
    (
        "data from-yolo unlabelled --out o",
        r"say with (--missing-labels-are-empty)",
        "{first} {0}",
        "left out",
    ),
    ("data from-voc nameless --images images --out o", r"(--label) NAME", "{first} {0} cat", ""),
    (
        "data from-coco bad_train.json --images images --out o",
        r"(--drop-unreadable) keeps 1 of them",
        "{first} {0}",
        "",
    ),
    (
        "data from-coco a_train.json b_train.json --images images --out o",
        r"or both with (--split train)",
        "{first} {0}",
        "",
    ),
    (
        "data from-coco corners_train.json --images images --out o",
        r"(--boxes xyxy)",
        "{first} {0}",
        "",
    ),
    ("data from-qwen shares.jsonl --out o", r"or (--scale normalized)", "{first} {0}", ""),
    ("data from-qwen none.jsonl --out o", r"add (--empty-answer) TEXT", "{first} {0} None", ""),
    ("data from-qwen nameless.jsonl --out o", r"(--label) NAME", "{first} {0} cat", ""),
    (
        "data from-qwen nameless.jsonl --out o",
        r"(--label-from-prompt) \"Locate",
        "{first} {0} 'Find the {{}}.'",
        "",
    ),
    (
        "data check parts.jsonl",
        r"`rematch (data check parts.jsonl --fix OUT)`",
        "{0}; data check OUT",
        "fix this first",
    ),
    (
        "data check pixels.jsonl",
        r"`rematch (data check pixels.jsonl --fix OUT --unit pixels)`",
        "{0}; data check OUT",
        "look like pixels",
    ),
    (
        "eval good.jsonl --answers answers.jsonl --format qwen_json",
        r"add (--answered-only)",
        "{first} {0}",
        "",
    ),
    (
        "check c.yaml --set tuner.lora_rank=16",
        r"`(tuner.train_type)` is full",
        "{first} --set {0}=lora",
        "has no effect",
    ),
    (
        "check c.yaml --set model.load_in_4bit=true",
        r"set `(tuner.train_type): lora`",
        "{first} --set {0}=lora",
        "",
    ),
    (
        "check c.yaml --set training.report_to=tensorboard,none",
        r"write a list: `(\[tensorboard,none\])`",
        "check c.yaml --set training.report_to=[tensorboard]",
        "",
    ),
    (
        "check c.yaml --set global_max_length=50",
        r"raise global_max_length \((\d+) holds them all\)",
        "check c.yaml --set global_max_length={0}",
        "",
    ),
    (
        "check c.yaml --set learning_rate=1e-4",
        r"did you mean `(training.learning_rate)`",
        "check c.yaml --set {0}=1e-4",
        "",
    ),
    (
        "check c.yaml --set custom.answer_format=coord_token",
        r"did you mean `(coord_tokens)`",
        "check c.yaml --set custom.answer_format={0}",
        "",
    ),
    (
        "check c.yaml --set custom.answer_format=qwen_json --set custom.train_jsonl=outlines.jsonl",
        r"`rematch (data boxes) ",
        "{0} outlines.jsonl --out boxes.jsonl; check c.yaml --set "
        + "custom.answer_format=qwen_json --set custom.train_jsonl=boxes.jsonl",
        "",
    ),
    (
        "check c.yaml --lr 1e-4",
        r"did you mean (--set training.learning_rate=1e-4)",
        "check c.yaml {0}",
        "",
    ),
    ("check cc.yaml", r"there is (c.yaml)", "check {0}", ""),
    (
        "init model good.jsonl --set training.seed=1",
        r"(leave --set out)",
        "check c.yaml --set training.seed=1",
        "",
    ),
    ("data check goods.jsonl", r"there is (good.jsonl)", "data check {0}", ""),
)
# Imports that leave something out: what their messages name are options of the same command.
IMPORTS = (
    "data from-voc swapped --images images --out o",
    "data from-voc nameless --images images --out o",
    "data from-labelme shapes --images images --out o",
    "data from-hf hf --images images --out o",
    "data from-csv boxes.csv --images images --out o",
)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def coco(boxes):
    """COCO of cats, one image for each number in `boxes`."""
    images = sorted({image for image, _ in boxes})
    return json.dumps(
        {
            "images": [{"id": image, "file_name": f"{image}.png"} for image in images],
            "categories": [{"id": 1, "name": "cat"}],
            "annotations": [{"image_id": i, "category_id": 1, "bbox": box} for i, box in boxes],
        }
    )


def chat(answers):
    return json_lines(
        {
            "messages": [
                {"role": "user", "content": "<image>Find the cats."},
                {"role": "assistant", "content": answer},
            ],
            "images": [f"images/{i}.png"],
        }
        for i, answer in enumerate(answers)
    )


def record(image, box, key="bbox_2d"):
    return {
        "images": [f"images/{image}.png"],
        "width": 64,
        "height": 64,
        "objects": [{"desc": "cat", key: box}],
    }


def prepare(work):
    for folder in ("images", "unnamed/images", "unlabelled/images"):
        (work / folder).mkdir(parents=True)
        for i in range(12):
            shutil.copy(ROOT / "tests/golden/e2e/images/0.png", work / folder / f"{i}.png")
    for i in range(12):
        write(work / f"unnamed/labels/{i}.txt", f"{i % 2} 0.5 0.5 0.2 0.2\n")
    write(work / "unlabelled/labels/0.txt", "0 0.5 0.5 0.2 0.2\n")
    write(work / "unlabelled/classes.txt", "cat\n")
    write(work / "nameless/0.xml", VOC.format(name="", x0=5))
    write(work / "swapped/0.xml", VOC.format(name="cat", x0=50))
    shapes = [{"label": "", "shape_type": "rectangle", "points": [[5, 5], [20, 20]]}]
    write(work / "shapes/0.json", json.dumps({"imagePath": "0.png", "shapes": shapes}))
    swapped = {"bbox": [[30, 5, -20, 20]], "category": [7]}
    write(work / "hf/metadata.jsonl", json_lines([{"file_name": "0.png", "objects": swapped}]))
    write(work / "boxes.csv", "filename,xmin,ymin,xmax,ymax,class\n0.png,30,5,9,20,cat\n")
    good = [5, 5, 20, 20]
    write(work / "bad_train.json", coco([(0, good), (0, [5, 5, -20, 20]), (1, good)]))
    write(work / "a_train.json", coco([(0, good)]))
    write(work / "b_train.json", coco([(1, good)]))
    write(work / "corners_train.json", coco([(i, [20 + i, 20, 50, 60]) for i in range(12)]))
    named = '[{{"bbox_2d": {}, "label": "cat"}}]'
    write(work / "shares.jsonl", chat([named.format([0.1, 0.1, 0.5, 0.5])] * 4))
    write(work / "none.jsonl", chat([named.format([100, 100, 500, 500]), "None"]))
    write(work / "nameless.jsonl", chat(['[{"bbox_2d": [100, 100, 500, 500]}]'] * 3))
    write(
        work / "parts.jsonl", json_lines(record(0, [99 * i, 9, 99 * i + 90, 200]) for i in range(4))
    )
    write(work / "pixels.jsonl", json_lines(record(i, [2, 2, 20 + i, 30]) for i in range(12)))
    write(work / "good.jsonl", json_lines(record(i, [10, 10, 600, 600]) for i in range(4)))
    outline = [10, 10, 500, 10, 500, 500]
    write(work / "outlines.jsonl", json_lines(record(i, outline, "poly") for i in range(4)))
    answer = {"image": "images/0.png", "text": named.format([100, 100, 500, 500])}
    write(work / "answers.jsonl", json_lines([answer]))
    write(work / "c.yaml", CONFIG)


def run(rematch, work, commands):
    """Runs commands of rematch, and of the shell after "!", until one fails; the exit code and the
    output of the last one, on one line.
    """
    code, text = 0, ""
    for command in commands.split("; "):
        words = ["bash", "-c", command[1:]]
        if not command.startswith("!"):
            words = [rematch, *shlex.split(command)]
        done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)
        code, text = done.returncode, " ".join((done.stdout + done.stderr).split())
        if code != 0:
            break
    return code, text


def problem(rematch, work, case):
    first, pattern, follow, unwanted = case
    advice = re.search(pattern, run(rematch, work, first)[1])
    if advice is None:
        return f"does not advise {pattern}: {run(rematch, work, first)[1]}"
    command = follow.format(advice[1], first=first)
    code, text = run(rematch, work, command)
    if code != 0 or (unwanted or advice[0]) in text:
        return f"`{advice[1]}` changes nothing: {command}\n  exit {code}: {text}"
    return ""


def foreign_options(rematch, work, command):
    """Options that the messages of an import name and its command does not take."""
    text = run(rematch, work, command)[1].split("next: ")[0]
    known = run(rematch, work, " ".join(command.split()[:2]) + " --help")[1]
    return sorted(set(re.findall(r"--[a-z-]+", text)) - set(re.findall(r"--[a-z-]+", known)))


def main():
    rematch = Path(sys.argv[1]).resolve()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for command in IMPORTS:
            if unknown := foreign_options(rematch, Path(name), command):
                failures += 1
                print(f"{command}: advises {unknown}, which it does not take")
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            prepare(Path(name))
            if found := problem(rematch, Path(name), case):
                failures += 1
                print(f"{case[0]}: {found}")
    print(f"{len(CASES)} advices, {failures} without effect")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
