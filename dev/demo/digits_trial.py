"""Trial: base that knows digits."""
import os, sys, subprocess
sys.path.insert(0, "dev/demo")
import formats as f
f.OUT.mkdir(parents=True, exist_ok=True)
os.environ["OMP_NUM_THREADS"] = "1"
f.run(sys.executable, f.ROOT / "dev/demo/make_base.py", f.OUT / "base", "--seed", 0)
f.scenes("simple", 16000)
f.scenes("hard", 3000)
base = f.train(f.config("qwen_json", "simple"), "qwen_json_base", 3000, 2e-3, 60, [])
print(f.score(f.config("qwen_json", "simple"), "simple_before", base))
print(f.score(f.config("qwen_json", "hard"), "hard_before", base))
