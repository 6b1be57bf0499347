#!/usr/bin/env python3
"""Reads what a run with monitor_dump wrote (steps 1 and 2 of 3, three samples each) with pandas and
TensorBoard's own reader.

usage: read_monitor.py RUN_DIR     exit code 77 when a reader is not installed
"""

import json
import sys
from pathlib import Path

try:
    import pandas
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

run = Path(sys.argv[1])
table = pandas.read_json(run / "completions/step_000002.jsonl", lines=True)
assert list(table.columns) == ["step", "prompt", "completion", "f1", "f1_labels", "advantage"], (
    table.columns
)
assert len(table) == 3 and set(table["step"]) == {2} and table["f1"].between(0, 1).all(), table
assert table["prompt"].str.len().min() > 0 and table["completion"].map(type).eq(str).all(), table

events = EventAccumulator(
    str(run / "runs"), size_guidance={"images": 0, "tensors": 0, "scalars": 0}
).Reload()
tags = events.Tags()
logged = [json.loads(line) for line in (run / "logging.jsonl").read_text().splitlines()]
assert [event.step for event in events.Scalars("loss")] == [line["step"] for line in logged]
assert abs(events.Scalars("loss")[0].value - logged[0]["loss"]) < 1e-5
images = events.Images("monitor/answers")
assert (
    [image.step for image in images] == [1, 2]
    and images[0].width > 100
    and images[0].encoded_image_string[1:4] == b"PNG"
), tags
texts = events.Tensors("monitor/texts")
assert [text.step for text in texts] == [1, 2] and b"```diff" in texts[0].tensor_proto.string_val[
    0
], tags
assert "monitor/texts" in events.PluginTagToContent("text")
print("read")
