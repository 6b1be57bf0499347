"""Trial: arms of the digit loss."""
import os, sys, json, fcntl, subprocess
from pathlib import Path
sys.path.insert(0, "dev/demo")
import formats as f
os.environ["OMP_NUM_THREADS"] = "1"; os.environ["REMATCH_NEUTRAL"] = "1"
BASE = f.OUT / "runs/qwen_json_base/checkpoint-3000"
hard = f.config("qwen_json", "hard")
KINDS = {"stage1": (160, []), "noise": (160, ["custom.coord_input_noise=12"]), "rewrite": (131, f.REWRITE)}
plain2 = [(o, k, 0, s) for s in (1, 2) for o in ("sorted", "random") for k in KINDS]
new = [("sorted", "stage1", 4, s) for s in (0, 1, 2)] + [("sorted", "rewrite", 4, s) for s in (0, 1, 2)]
new += [("random", k, 4, s) for k in ("rewrite", "stage1") for s in (0, 1, 2)]
new += [("sorted", k, 2, s) for k in ("stage1", "rewrite") for s in (0, 1, 2)]
new += [("sorted", "noise", 4, s) for s in (0, 1, 2)]
new += [("sorted", k, 8, s) for k in ("stage1", "rewrite") for s in (0, 1, 2)]
new += [("random", k, 2, s) for k in ("rewrite", "stage1") for s in (0, 1, 2)]
new += [("random", "noise", 4, s) for s in (0, 1, 2)]
new += [("sorted", "stage1", 0.3, 0)] + [("random", k, 8, s) for k in ("rewrite", "stage1") for s in (0, 1, 2)]
new += [(o, "noise", g, s) for o in ("sorted", "random") for g in (2, 8) for s in (0, 1, 2)]
jobs = [x for pair in zip(plain2, new) for x in pair] + new[len(plain2):]
for order, kind, sigma, seed in jobs:
    name = f"{order}_{kind}_{sigma}_{seed}" + ("_n" if sigma else "")
    mark = Path(f"demo/out/formats/marks/{name}")
    mark.parent.mkdir(exist_ok=True)
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        continue
    steps, sets = KINDS[kind]
    os.environ["REMATCH_DIGITS"] = str(sigma) if sigma else ""
    ck = f.train(hard, name, steps, 1.5e-3, 5, [f"model.model={BASE}", f"training.seed={seed}", f"custom.object_ordering={order}", *sets])
    r = f.score(hard, name, ck)
    keep = {k: r.get(k) for k in ("eval_rollout_f1_iou50", "eval_rollout_f1_labels_iou50", "eval_rollout_f1_iou75", "coco_ap", "coco_ap75", "eval_rollout_duplicates", "eval_rollout_parse_malformed_rate", "seconds")}
    print(json.dumps({"name": name, **keep}), flush=True)
