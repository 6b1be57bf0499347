"""Writes [height, width, factor, min_pixels, max_pixels, new_height, new_width] of transformers'
smart_resize.

Usage: vision_smart_resize.py > tests/golden/vision_smart_resize.json
"""

import json
import random

from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

random.seed(5)
rows = []
while len(rows) < 600:
    scale = random.choice([60, 300, 3000, 9000])
    height, width = random.randint(1, scale), random.randint(1, scale)
    factor = random.choice([28, 32])
    low, high = random.choice(
        [(56 * 56, 28 * 28 * 1280), (65536, 16777216), (1, 1024), (1 << 20, 1 << 20)]
    )
    if max(height, width) > 200 * min(height, width):
        continue
    rows.append([height, width, factor, low, high, *smart_resize(height, width, factor, low, high)])
print("[" + ",\n ".join(json.dumps(row) for row in rows) + "]")
