"""Prints evaluations side by side: report.py NAME=eval_results.json …; with two or more, the last
column is the second minus the first.
"""

import json
import sys
from pathlib import Path

ROWS = (
    ("F1 @ IoU 0.5", "eval_rollout_f1_iou50"),
    ("label F1 @ IoU 0.5", "eval_rollout_f1_labels_iou50"),
    ("precision @ IoU 0.5", "eval_rollout_precision_iou50"),
    ("recall @ IoU 0.5", "eval_rollout_recall_iou50"),
    ("label accuracy of matches", "eval_rollout_label_accuracy_iou50"),
    ("COCO AP, by score", "coco_ap"),
    ("COCO AP50, by score", "coco_ap50"),
    ("repeated predictions", "eval_rollout_duplicates"),
    ("malformed rate", "eval_rollout_parse_malformed_rate"),
    ("truncated rate", "eval_rollout_parse_truncated_rate"),
    ("predictions per truth", "eval_rollout_pred_per_gt"),
    ("objects on the pages", "eval_rollout_gt_objects"),
)


def cell(value, is_count, signed=False):
    if value is None:
        return "-"
    digits = 0 if is_count else 3
    value = round(value, digits) + 0.0  # no "-0.000"
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def main(arguments):
    columns = []
    for argument in arguments:
        name, _, path = argument.partition("=")
        columns.append((name, json.loads(Path(path).read_text(encoding="utf-8"))))
    if not columns:
        print(__doc__, file=sys.stderr)
        return 2
    table = [["", *(name for name, _ in columns)] + (["gain"] if len(columns) > 1 else [])]
    for label, key in ROWS:
        is_count = key.endswith("_objects")
        values = [scores.get(key) for _, scores in columns]
        row = [label, *(cell(value, is_count) for value in values)]
        if len(columns) > 1:
            known = values[0] is not None and values[1] is not None
            row.append(cell(values[1] - values[0], is_count, signed=True) if known else "-")
        table.append(row)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for index, row in enumerate(table):
        line = [
            row[0].ljust(widths[0]),
            *(value.rjust(width) for value, width in zip(row[1:], widths[1:])),
        ]
        print("  ".join(line).rstrip())
        if index == 0:
            print("-" * (sum(widths) + 2 * (len(widths) - 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
