"""Trains a small model on photographs: photos.py SET SOURCE [--steps N] [--seeds 0]

SET and SOURCE, a local copy (nothing is downloaded):
  orchard  github.com/ai-agriculture-circuits-and-systems/AppleBBCH81 (CC BY 4.0): 1,838 pieces of
           354 photographs of apple trees. Its own split has pieces of one photograph on both sides;
           here every eighth photograph is held out whole.
  cells    github.com/Shenggan/BCCD_Dataset (364 photographs of blood cells, MIT): the white cells
  listed   the white cells and platelets, with prompts that list them: in training what a
           picture shows, in validation both
  digits   the same pictures and prompts, answered in digits
  bccd     all its cells, with prompts that list classes; the 87 of its val list all three

Records are 320 pixels wide: quarters of an orchard's pieces, in which an apple is as large as two
image tokens, quarters for the lists, and cells made smaller. tests/shapes/model, which learned
drawn shapes from random weights, learns them for N steps (600, the orchard 2,000): the base, with
mirrored and recoloured pictures and sorted truth. Then a quarter of these steps more: stage 1, with
noise, and stage 2. All are scored on the pictures that are held out. Costs are processor time on
one thread. What has a result in demo/out/photos is not run again.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "dev/demo"))
from experiments import print_table, rematch, run, train

WIDTH = 320
REMATCH = "build/release/bin/rematch"
STAGE_2 = [
    "custom.trainer_variant=rollout_matching_sft",
    "custom.extra.rollout_matching.target_policy=rewrite",
]
ARMS = {"stage 1": [], "with noise": ["custom.coord_input_noise=12"], "stage 2, `rewrite`": STAGE_2}
ABSENT = {"with absent classes": ["custom.absent_classes.share=0.5"]}
LISTED = {
    "stage 1": [],
    "absent classes, share .25": ["custom.absent_classes.share=0.25"],
    "absent classes, share .5": ["custom.absent_classes.share=0.5"],
    "absent classes, share 1": ["custom.absent_classes.share=1"],
    "stage 2, `rewrite`": STAGE_2,
    "stage 2, absent classes, share 1": [*STAGE_2, "custom.absent_classes.share=1"],
}


def shrink(source, target):
    """@return width and height of the written picture, and its scale"""
    image = Image.open(source).convert("RGB")
    scale = WIDTH / image.width
    target.parent.mkdir(parents=True, exist_ok=True)
    size = (WIDTH, round(image.height * scale))
    image.resize(size, Image.Resampling.BICUBIC).save(target)
    return *size, scale


def quarters(image, boxes):
    """The four quarters of a picture, each with the boxes [x, y, w, h] that it shows half of."""
    width, height = image.width // 2, image.height // 2
    for left, top in ((0, 0), (width, 0), (0, height), (width, height)):
        inside = []
        for x, y, w, h in boxes:
            x1, x2 = max(x - left, 0), min(x + w - left, width)
            y1, y2 = max(y - top, 0), min(y + h - top, height)
            if x1 < x2 and y1 < y2 and (x2 - x1) * (y2 - y1) >= w * h / 2:
                inside.append([x1, y1, x2 - x1, y2 - y1])
        yield image.crop((left, top, left + width, top + height)), inside


def orchard_records(source, out):
    """The three COCO files of the set become two, of quarters."""
    boxes = {}
    for part in ("train", "val", "test"):
        coco = json.loads((source / f"annotations/applebbch81_instances_{part}.json").read_text())
        names = {image["id"]: image["file_name"] for image in coco["images"]}
        boxes |= {name: [] for name in names.values() if name not in boxes}
        for one in coco["annotations"]:
            boxes[names[one["image_id"]]].append(one["bbox"])
    (out / "small").mkdir(exist_ok=True)
    photographs = sorted({name[:8] for name in boxes})  # DSC_nnnn
    held_out = set(photographs[::8])
    for split in ("train", "val"):
        coco = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "apple"}]}
        for name in sorted(boxes):
            if (name[:8] in held_out) != (split == "val"):
                continue
            piece = Image.open(source / "data/images" / name).convert("RGB")
            for number, (quarter, inside) in enumerate(quarters(piece, boxes[name])):
                entry = {"id": len(coco["images"]), "file_name": f"{Path(name).stem}_{number}.png"}
                quarter.save(out / "small" / entry["file_name"])
                coco["images"].append(entry | {"width": quarter.width, "height": quarter.height})
                for box in inside:
                    one = {"id": len(coco["annotations"]), "image_id": entry["id"]}
                    coco["annotations"].append(one | {"category_id": 1, "bbox": box})
        (out / f"{split}.json").write_text(json.dumps(coco))
    files = (out / "train.json", out / "val.json")
    run(REMATCH, "data", "from-coco", *files, "--images", out / "small", "--out", out)


def small_records(directory, split, out):
    """The records of a split with pictures of 320 pixels in `out`."""
    for line in (directory / f"{split}.jsonl").read_text().splitlines():
        record = json.loads(line)
        path = directory / record["images"][0]
        small = Path("small", path.stem + ".png")
        width, height, _ = shrink(path, out / small)
        yield record | {"images": [str(small)], "width": width, "height": height}


def write_records(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def cells_records(source, out):
    """The photographs with white cells, without their other cells."""
    run(REMATCH, "data", "from-voc", source, "--out", out / "all")
    for split in ("train", "val"):
        records = list(small_records(out / "all", split, out))
        for record in records:
            white = [one for one in record["objects"] if one["desc"] == "WBC"]
            record["objects"] = [one | {"desc": "white cell"} for one in white]
        write_records(out / f"{split}.jsonl", [one for one in records if one["objects"]])


def bccd_records(source, out):
    """train.jsonl lists what a photograph shows, val.jsonl all classes."""
    for split, negatives in (("train", 0), ("val", 0.67)):
        words = ["--prompt-classes", *(["--negatives", negatives] if negatives else [])]
        run(REMATCH, "data", "from-voc", source, "--out", out / split, *words)
        write_records(out / f"{split}.jsonl", small_records(out / split, split, out))


def listed_records(source, out):
    """White cells and platelets in quarters of the photographs, in which a platelet is as large as
    an image token: train.jsonl lists what a picture shows, val.jsonl both.
    """
    names = {"WBC": "white cell", "Platelets": "platelet"}
    run(REMATCH, "data", "from-voc", source, "--out", out / "all")
    (out / "small").mkdir(exist_ok=True)
    for split in ("train", "val"):
        records = []
        for line in (out / "all" / f"{split}.jsonl").read_text().splitlines():
            records += quarter_records(out, json.loads(line), names)
        for record in records:
            shown = {one["desc"] for one in record["objects"]}
            listed = sorted(shown if split == "train" else names.values())
            record["prompt"] = f"Find these: {', '.join(listed)}."
        write_records(out / f"{split}.jsonl", records)


def quarter_records(out, record, names):
    """Records of the quarters of a photograph that show an object."""
    path = out / "all" / record["images"][0]
    image = Image.open(path).convert("RGB")
    of_names = [quarters(image, list(pixels(record, name))) for name in names]
    for number, views in enumerate(zip(*of_names, strict=True)):
        quarter = views[0][0]
        objects = [
            bins(box, quarter, said)
            for (_, inside), said in zip(views, names.values(), strict=True)
            for box in inside
        ]
        if objects:
            file = f"small/{path.stem}_{number}.png"
            quarter.save(out / file)
            size = {"width": quarter.width, "height": quarter.height}
            yield {"images": [file], **size, "objects": objects}


def pixels(record, name):
    """The boxes [x, y, w, h] of a name."""
    sides = (record["width"], record["height"])
    for one in record["objects"]:
        if one["desc"] == name:
            x1, y1, x2, y2 = (one["bbox_2d"][k] * sides[k % 2] / 1000 for k in range(4))
            yield x1, y1, x2 - x1, y2 - y1


def bins(box, image, name):
    """The object of a record."""
    x, y, w, h = box
    sides = ((x, image.width), (y, image.height), (x + w, image.width), (y + h, image.height))
    return {"desc": name, "bbox_2d": [min(999, round(1000 * at / side)) for at, side in sides]}


TURNS = "hflip: 0.5, vflip: 0.5, rot90: 0.75, color: 0.2"
# (makes train.jsonl and val.jsonl, prompt, changes of pictures, arms)
SETS = {
    "orchard": (orchard_records, "Find every apple.", "hflip: 0.5, color: 0.2", ARMS),
    "cells": (cells_records, "Find every white cell.", TURNS, ARMS),
    "listed": (listed_records, None, TURNS, LISTED),
    "digits": (listed_records, None, TURNS, LISTED),
    "bccd": (bccd_records, None, TURNS, ARMS | ABSENT),
}


COORDS = """  answer_format: coord_tokens
  coord_soft_ce_w1: {enabled: true, target_sigma: 8.0}"""


def config(out, prompt, changes):
    path = out / "photos.yaml"
    how = "  answer_format: qwen_json" if out.name == "digits" else COORDS
    said = f"  user_prompt: {prompt}\n" if prompt else ""
    path.write_text(f"""global_max_length: 1024
model: {{model: tests/shapes/model, torch_dtype: float32}}
template: {{system: List the objects as JSON.}}
data: {{dataloader_num_workers: 1, augment: {{{changes}}}}}
custom:
{said}  train_jsonl: {out}/train.jsonl
  val_jsonl: {out}/val.jsonl
{how}
  extra:
    rollout_matching: {{rollout_backend: native, max_new_tokens: 420}}
training:
  output_dir: {out}/runs
  per_device_train_batch_size: 8
  per_device_eval_batch_size: 32
  effective_batch_size: 8
  weight_decay: 0.01
  max_grad_norm: 1.0
  warmup_steps: 20
  lr_scheduler_type: cosine
  save_strategy: "no"
  save_last_epoch: true
  save_only_model: true
  report_to: none
""")
    return path


def score(path, runs, name, checkpoint):
    results = runs / f"{name}_eval" / "eval_results.json"
    if not results.exists():
        rematch("eval", path, [f"model.model={checkpoint}", f"training.run_name={name}_eval"])
    scores = json.loads(results.read_text())
    scores["boxes_per_second"] = scores["eval_rollout_pred_objects"] / scores["eval_runtime"]
    return scores | {"seconds": json.loads((checkpoint.parent / "seconds.json").read_text())}


def iou(a, b):
    width, height = (max(0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / max(1, sum(areas) - width * height)


def answer_until_repeat(objects, in_digits):
    """The answer, ended before the first object that is there already: its name, IoU of .5."""
    kept = []
    for one in objects:
        box = one["bbox_2d"]
        if any(one["desc"] == old["desc"] and iou(box, old["bbox_2d"]) >= 0.5 for old in kept):
            break
        kept.append(one)
    if in_digits:
        entries = [{"bbox_2d": one["bbox_2d"], "label": one["desc"]} for one in kept]
        return f"```json\n{json.dumps(entries)}\n```"
    entries = {
        f"object_{number}": one | {"bbox_2d": [f"<|coord_{bin}|>" for bin in one["bbox_2d"]]}
        for number, one in enumerate(kept, 1)
    }
    return json.dumps(entries)


def score_repeat_stop(out, runs, name, seconds):
    """The scores of a run's answers, had a decoder ended each at its first repeat."""
    samples = next((runs / f"{name}_eval/eval").glob("*.samples.jsonl"))
    in_digits = out.name == "digits"
    answers = out / f"{name}_until_repeat.jsonl"
    lines = map(json.loads, samples.read_text().splitlines())
    write_records(
        answers,
        (
            {"id": one["sample_id"], "text": answer_until_repeat(one["predictions"], in_digits)}
            for one in lines
        ),
    )
    written = "qwen_json" if in_digits else "coord_tokens"
    place = ["--set", f"training.output_dir={runs}"]
    run(REMATCH, "eval", out / "val.jsonl", "--answers", answers, "--format", written, *place)
    scores = json.loads((runs / answers.stem / "eval_results.json").read_text())
    return scores | {"seconds": seconds, "boxes_per_second": 0}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=sorted(SETS))
    parser.add_argument("source", type=Path)
    parser.add_argument("--steps", type=int, help="of the base; others: a quarter")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    make_records, prompt, changes, arms = SETS[args.set]
    steps = args.steps or (2000 if args.set == "orchard" else 600)
    out = Path("demo/out/photos") / args.set
    runs = out / "runs"
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "val.jsonl").exists():
        make_records(args.source.resolve(), out)
    path = config(out, prompt, changes)
    base = train(path, runs, f"base_{steps}", steps, 1e-3, [])
    columns = [("before", [score(path, runs, f"before_{steps}", base)])]
    for arm, settings in arms.items():
        trained = []
        for seed in args.seeds:
            name = "".join(letter if letter.isalnum() else "_" for letter in arm)
            name += f"_{steps}_{seed}"
            more = [f"model.model={base}", f"training.seed={seed}", *settings]
            checkpoint = train(path, runs, name, steps // 4, 1e-3, more)
            trained.append(score(path, runs, name, checkpoint))
        columns.append((arm, trained))
        if arm == "stage 1":
            stopped = [
                score_repeat_stop(out, runs, f"stage_1_{steps}_{seed}", scores["seconds"])
                for seed, scores in zip(args.seeds, trained, strict=True)
            ]
            columns.append(("stage 1, repeat-stop", stopped))
    absent = ("absent classes answered", "eval_rollout_absent_answered")
    more = [absent] if prompt is None else []
    print_table(columns, *more, ("boxes a second", "boxes_per_second"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
