"""Every program of bench/ once in its shortest form, with an even and with an odd number of rounds.

usage: shortest_check.py BUILD_DIRECTORY
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
GOLDEN = ROOT / "tests/golden"
BUILD = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else ROOT / "build/release"
REMATCH = BUILD / "bin/rematch"


def needs(*modules):
    """Skips a test where Python lacks one of the modules."""
    missing = []
    for module in modules:
        try:
            __import__(module)
        except ImportError:
            missing.append(module)
    return unittest.skipIf(missing, f"scripts/setup --oracles installs {', '.join(missing)}")


class Shortest(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_bench(self, *command, codes=(0,)):
        """Runs a bench on one thread. @return its standard output"""
        for word in command[:2]:
            if BUILD in pathlib.Path(word).parents and not pathlib.Path(word).exists():
                self.skipTest(f"{word} is not built")
        done = subprocess.run(
            list(map(str, command)),
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        self.assertIn(done.returncode, codes, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def script(self, name, program, *options, codes=(0,)):
        """Runs bench/NAME.py on a program. @return what it wrote with --json"""
        if not program.exists():
            self.skipTest(f"{program} is not built")
        report = self.scratch / "report.json"
        self.run_bench(
            sys.executable, BENCH / f"{name}.py", program, *options, "--json", report, codes=codes
        )
        return json.loads(report.read_text())

    @needs("binpacking")
    def test_pack(self):
        for rounds in (1, 2):
            self.script("pack", BUILD / "bench/bench_pack", "--buffers", 1, "--rounds", rounds)

    @needs("torch", "transformers")
    def test_mstep(self):
        found = self.script("mstep", BUILD / "bench/bench_mstep", "--tokens", 64, "--steps", 1)
        self.assertEqual(len(found["sides"]), 3)

    @needs("torch", "transformers", "PIL")
    def test_plan(self):
        # How good the plan is on this machine is not the question here: exit 1 says so.
        found = self.script(
            "plan", REMATCH, "--only", "hf rollouts, DoRA, frozen tower", codes=(0, 1)
        )
        self.assertEqual(len(found), 1)

    # By far the slowest to start: an even number only, which once gave half tokens.
    @needs("torch", "transformers", "peft", "PIL")
    def test_published(self):
        one = ("--layers", 1, "--images", 1, "--side", 256, "--steps", 1, "--threads", 1)
        found = self.script(
            "published",
            REMATCH,
            *("--real", GOLDEN / "model", "--shape", "tiny_tied", "--dtype", "float32"),
            *("--dropout", 0, "--work", self.scratch / "work", "--rounds", 2, *one),
        )
        self.assertIsInstance(found["program"]["tokens"], int)

    @needs("numpy", "PIL", "torch", "transformers")
    def test_ranks(self):
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            self.skipTest("counting bytes needs a network namespace, which takes root")
        if not (ROOT / ".venv/share/rematch/digits.csv.gz").exists():
            self.skipTest("the scans of digits are missing: scripts/setup fetches them")
        for rounds in (1, 2):
            sides = ("--side", "1 rank x 1 thread", "--side", "1 rank x 2 threads")
            self.script(
                "ranks", REMATCH, "--case", "small", *sides, "--steps", 1, "--rounds", rounds
            )

    @needs("torch", "transformers")
    def test_rollout(self):
        for rounds in (1, 2):
            few = ("--sizes", "tiny", "--prompts", 2, "--rounds", rounds, "--threads", 1)
            found = self.script("rollout", BUILD / "bench/bench_rollout", *few)
            self.assertIn("tiny", found["sizes"])

    @needs("torch", "transformers")
    def test_step(self):
        if not (ROOT / "demo/out/crowded").exists():
            self.skipTest("demo/out/crowded is missing: scripts/demo makes it")
        for rounds in (1, 2):
            few = ("--steps", 1, "--samples", 2, "--threads", 1, "--rounds", rounds)
            self.script("step", REMATCH, *few)

    def test_rollout_backends(self):
        for rounds in (1, 2):
            few = ("--batches", 1, "--new-tokens", 4, "--image-px", 64, "--rounds", rounds)
            self.run_bench(BUILD / "bench/bench_rollout_backends", "--backends", "hf,native", *few)

    def test_profile(self):
        config = self.scratch / "run.yaml"
        config.write_text(f"""global_max_length: 1024
model: {{model: {GOLDEN}/model/tiny_tied, torch_dtype: float32}}
training: {{output_dir: {self.scratch}, run_name: run, max_steps: 1, learning_rate: 1.0e-3,
  eval_strategy: "no", save_strategy: "no", report_to: none}}
custom: {{trainer_variant: sft, train_jsonl: {GOLDEN}/e2e/train.jsonl}}
""")
        self.assertIn("| `aten::", self.run_bench(BUILD / "bench/bench_profile", config, 0))


if __name__ == "__main__":
    unittest.main()
