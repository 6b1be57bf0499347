"""Trial: the rows of the table that were missing."""
import os, sys, json
from pathlib import Path
sys.path.insert(0, "dev/demo")
import formats as f
os.environ["OMP_NUM_THREADS"] = "1"; os.environ["REMATCH_NEUTRAL"] = "1"
BASE = f.OUT / "runs/qwen_json_base/checkpoint-3000"
KINDS = {"stage1": (160, []), "noise": (160, ["custom.coord_input_noise=12"]), "rewrite": (131, f.REWRITE)}
D, C = "qwen_json", "coord_tokens"
jobs = [(D, "sorted", "rewrite", 0, 2), (C, "sorted", "stage1", 0, 0), (D, "sorted", "stage1", 2, 0), (D, "sorted", "stage1", 8, 0)]
jobs += [(D, "random", k, 0, 2) for k in ("stage1", "noise", "rewrite")]
jobs += [(D, "sorted", "rewrite", g, 0) for g in (2, 8)] + [(D, "sorted", "noise", 4, 0)]
jobs += [(C, "sorted", "stage1", 0, s) for s in (1, 2)] + [(C, "random", "stage1", 0, 0)]
jobs += [(D, "sorted", k, g, s) for s in (1, 2) for g in (2, 8) for k in ("stage1", "rewrite")]
jobs += [(D, "random", "rewrite", 4, 2)] + [(D, "sorted", "noise", 4, s) for s in (1, 2)]
jobs += [(C, "random", "stage1", 0, s) for s in (1, 2)]
jobs += [(D, "random", "stage1", 4, s) for s in (0, 1, 2)]
for fmt, order, kind, sigma, seed in jobs:
    name = f"{order}_{kind}_{sigma}_{seed}" + ("_n" if sigma else "") + ("_coord" if fmt == C else "")
    steps, sets = KINDS[kind]
    os.environ["REMATCH_DIGITS"] = str(sigma) if sigma else ""
    hard = f.config(fmt, "hard")
    try:
        ck = f.train(hard, name, steps, 1.5e-3, 5, [f"model.model={BASE}", f"training.seed={seed}", f"custom.object_ordering={order}", *sets])
        r = f.score(hard, name, ck)
    except Exception as e:
        print("FAILED", name, e, flush=True); continue
    keep = {k: r.get(k) for k in ("eval_rollout_f1_iou50", "eval_rollout_f1_labels_iou50", "eval_rollout_f1_iou75", "coco_ap", "coco_ap75", "eval_rollout_duplicates", "eval_rollout_parse_malformed_rate", "seconds")}
    print(json.dumps({"name": name, **keep}), flush=True)
