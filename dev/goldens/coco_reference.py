#!/usr/bin/env python3
"""1 000 random images with labelled boxes, scored by pycocotools: what
tests/evaluate/coco_oracle_test.cc compares with.

usage: coco_reference.py SEED score|order > JSON
JSON: {"images": [{truths, predictions}], "stats": [12 numbers], "per_class": {label: AP}}
A box is [label, left, top, width, height]; predictions are in the order of the answer. By score
each has a sixth value, equal for some;
by order the k-th scores 1 - k/1000.
"""

import contextlib
import io
import json
import random
import sys

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

LABELS = ["cat", "dog", "sign", "person", "never seen"]


def scene(rng, by_score):
    def box():
        side = rng.choice([8, 20, 32, 60, 96, 150, 300])
        return [
            rng.randrange(0, 900),
            rng.randrange(0, 900),
            max(1, side + rng.randrange(-7, 8)),
            max(1, side + rng.randrange(-7, 8)),
        ]

    truths = [[rng.choice(LABELS[:4]), *box()] for _ in range(rng.choice([0, 1, 3, 8, 20]))]
    predictions = []
    for label, x, y, w, h in truths:
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            wobble = rng.choice([0, 1, 4, 12])
            moved = [v + rng.randint(-wobble, wobble) for v in (x, y, w, h)]
            predictions.append(
                [
                    rng.choice(LABELS) if rng.random() < 0.2 else label,
                    moved[0],
                    moved[1],
                    max(0, moved[2]),
                    max(0, moved[3]),
                ]
            )
    predictions += [
        [rng.choice(LABELS), *box()]
        for _ in range(rng.choice([0, 0, 2, 130 if rng.random() < 0.05 else 1]))
    ]
    rng.shuffle(predictions)
    if by_score:
        predictions = [[*box, rng.choice([0.25, 0.5, 0.75, rng.random()])] for box in predictions]
    return truths, predictions


def main():
    rng = random.Random(int(sys.argv[1]))
    by_score = sys.argv[2] == "score"
    images = [scene(rng, by_score) for _ in range(1000)]
    labels = sorted({label for truths, _ in images for label, *_ in truths})
    category = {label: i + 1 for i, label in enumerate(labels)}
    annotations, results = [], []
    for image, (truths, predictions) in enumerate(images):
        for label, *box in truths:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": category[label],
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                }
            )
        for k, (label, *box) in enumerate(predictions):
            if label in category:
                score = box[4] if by_score else 1 - k / 1000
                results.append(
                    {
                        "image_id": image,
                        "category_id": category[label],
                        "bbox": box[:4],
                        "score": score,
                    }
                )
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": i} for i in range(len(images))],
            "annotations": annotations,
            "categories": [{"id": i, "name": label} for label, i in category.items()],
        }
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    per_class = {
        label: float(np.mean(precision[:, :, i][precision[:, :, i] > -1]))
        for i, label in enumerate(labels)
    }
    print(
        json.dumps(
            {
                "images": [{"truths": t, "predictions": p} for t, p in images],
                "stats": evaluation.stats.tolist(),
                "per_class": per_class,
            }
        )
    )


main()
