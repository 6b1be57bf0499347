"""Makes the wheel, installs it in an empty environment and uses it there: no compiler, no library
of apt, no checkout in sight.

    wheel_check.py [--nccl]     # --nccl: of scripts/wheel --nccl

Exit 77 (skipped) where the tools or torch cannot be downloaded.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FROM_TORCH = {"libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so", "libgomp.so.1"}
FROM_SYSTEM = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
FROM_CUDA = {"libtorch_cuda.so", "libc10_cuda.so"}
OPTIONS = ["--nccl"] if "--nccl" in sys.argv else []
CONFIG = """\
model: {{model: {model}}}
custom: {{train_jsonl: {scenes}/train.jsonl, val_jsonl: {scenes}/val.jsonl,
  user_prompt: Find every shape., trainer_variant: rollout_matching_sft,
  coord_tokens: {{enabled: true}},
  extra: {{rollout_matching: {{
    rollout_backend: native, max_new_tokens: 32, target_policy: rewrite}}}}}}
template: {{system: List the objects as JSON.}}
training: {{output_dir: {out}, run_name: run, max_steps: 2, effective_batch_size: 2,
  save_strategy: steps, save_steps: 1, eval_strategy: "no", logging_steps: 1, report_to: none}}
"""


def needed(path):
    lines = subprocess.run(
        ["readelf", "-d", path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line], [
        line for line in lines if "PATH)" in line
    ]


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="rematch_wheel_"))
        made = subprocess.run(
            [ROOT / "scripts/wheel", *OPTIONS, "--no-setup"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if "cannot install the tools" in made.stderr:
            print("skipped: the tools that make wheels cannot be downloaded")
            os._exit(77)
        assert made.returncode == 0, made.stderr
        cls.wheel = next((ROOT / "dist").glob("*.whl"))
        cls.python = cls.directory / "env/bin/python"
        subprocess.run([sys.executable, "-m", "venv", cls.directory / "env"], check=True)
        installed = subprocess.run(
            [cls.python, "-m", "pip", "install", "-q", cls.wheel], capture_output=True, text=True
        )
        if installed.returncode != 0 and "torch" in installed.stderr:
            print("skipped: torch cannot be downloaded:", installed.stderr.splitlines()[-1])
            os._exit(77)
        assert installed.returncode == 0, installed.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def run_program(self, *arguments):
        """Runs the installed program far from the checkout, with nothing else on PATH."""
        return subprocess.run(
            [self.directory / "env/bin/rematch", *arguments],
            cwd=self.directory,
            capture_output=True,
            text=True,
            env={
                "PATH": str(self.directory / "env/bin"),
                "HOME": str(self.directory),
                "OMP_NUM_THREADS": "1",
            },
        )

    def test_is_small(self):
        self.assertLess(self.wheel.stat().st_size, 30e6)

    def test_leaves_no_trace_in_the_tree_of_the_build(self):
        self.assertNotIn(
            "build/wheel",
            (ROOT / "build/release/CMakeCache.txt").read_text(),
            "heal an older tree: cmake -U '*Python*' -U '*PYTHON*' -U CMAKE_MODULE_PATH -U "
            "CMAKE_PREFIX_PATH build/release",
        )

    def test_brings_every_library_but_those_of_torch_and_the_system(self):
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.directory / "unpacked")
        bundled = {path.name for path in (self.directory / "unpacked/rematch.libs").iterdir()}
        modules = [path.name for path in (self.directory / "unpacked/rematch").glob("_stages.*.so")]
        self.assertTrue(modules)
        self.assertEqual(
            [path.name for path in (self.directory / "unpacked/rematch/bin").iterdir()],
            ["rematch"],
            "no tools for tests",
        )
        for name in ("bin/rematch", "lib/librematch_vllm.so", *modules):
            ordered, search = needed(self.directory / "unpacked/rematch" / name)
            libraries = set(ordered)
            self.assertEqual(libraries - bundled - FROM_TORCH - FROM_SYSTEM, set(), name)
            self.assertNotIn(str(ROOT), "".join(search), name)
            if name in modules:
                self.assertFalse(libraries & FROM_TORCH, "the stages need no torch")
            else:
                self.assertIn(
                    "libtorch.so", libraries, "without it a CUDA wheel's devices stay unknown"
                )
                self.assertLess(
                    ordered.index("libstdc++.so.6"),
                    ordered.index("libtorch.so"),
                    "torch exports functions of another libstdc++",
                )

    def test_brings_nccl_where_it_was_asked_for(self):
        with zipfile.ZipFile(self.wheel) as archive:
            library = "rematch/lib/librematch_nccl.so"
            if OPTIONS:
                self.assertIn(library, archive.namelist())
            if library in archive.namelist():  # also where torch itself is a CUDA build
                libraries, _ = needed(archive.extract(library, self.directory / "nccl"))
                bundled = {name.rpartition("/")[2] for name in archive.namelist()}
                self.assertIn("libtorch_cuda.so", libraries)
                self.assertEqual(
                    set(libraries) - bundled - FROM_CUDA - FROM_TORCH - FROM_SYSTEM, set()
                )

    def test_links_no_symbol_of_cuda(self):
        names = subprocess.run(
            [
                "nm",
                "-D",
                "--undefined-only",
                self.directory
                / "env/lib"
                / f"python{sys.version_info[0]}.{sys.version_info[1]}"
                / "site-packages/rematch/bin/rematch",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.assertNotRegex(names, r"\b(cuda[A-Z]\w+|cu[A-Z]\w+|nccl\w+)")

    def test_trains_resumes_and_evaluates(self):
        scenes = self.directory / "scenes"
        subprocess.run(
            [
                ROOT / ".venv/bin/python",
                ROOT / "tests/shapes/make_scenes.py",
                scenes,
                "--split",
                "simple",
                "--num-train",
                "6",
                "--num-val",
                "2",
                "--seed",
                "0",
            ],
            check=True,
            capture_output=True,
        )
        config = self.directory / "run.yaml"
        config.write_text(
            CONFIG.format(
                model=ROOT / "tests/shapes/model", scenes=scenes, out=self.directory / "out"
            )
        )
        first = self.run_program("train", str(config), "--set", "training.max_steps=1")
        self.assertEqual(first.returncode, 0, first.stderr)
        more = self.run_program(
            "train", str(config), "--set", "training.resume_from_checkpoint=latest"
        )
        self.assertEqual(more.returncode, 0, more.stderr)
        scored = self.run_program(
            "eval", str(config), "--set", f"model.model={self.directory}/out/run/checkpoint-2"
        )
        self.assertEqual(scored.returncode, 0, scored.stderr)
        self.check_scores()
        steps = [
            json.loads(line)["step"]
            for line in (self.directory / "out/run/logging.jsonl").read_text().splitlines()
        ]
        self.assertEqual(sorted(set(steps) & {1, 2}), [1, 2])

    def check_scores(self):
        """rematch.evaluate gives an evaluation's own scores for the answers that it wrote."""
        result = next((self.directory / "out/run/eval").glob("*.samples.jsonl"))
        expected = json.loads(
            result.with_name(result.name.replace(".samples.jsonl", ".json")).read_text()
        )
        script = (
            "import json, sys, rematch; print(json.dumps(rematch.evaluate([json.loads(line) "
            "for line in open(sys.argv[1])])))"
        )
        found = json.loads(
            subprocess.run(
                [self.python, "-c", script, result], capture_output=True, text=True, check=True
            ).stdout
        )
        self.assertGreater(len(found), 40)
        expected.setdefault("coco_per_class", {})  # not written where no class has a score
        for name, value in found.items():
            self.assertEqual(value, expected[name], name)

    def test_predicts_from_python(self):
        photo = ROOT / "tests/golden/first_run/photos/chelsea.jpg"
        script = (
            "import json, sys, rematch; print(json.dumps(rematch.predict(sys.argv[1], "
            "sys.argv[2], max_new_tokens=8)))"
        )
        done = subprocess.run(
            [self.python, "-c", script, ROOT / "demo/model", photo],
            cwd=self.directory,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [(one["width"], one["height"]) for one in json.loads(done.stdout)], [(384, 256)]
        )

    def test_gives_the_stages_to_python(self):
        check = ROOT / "tests/python/stages_check.py"
        done = subprocess.run(
            [self.python, check, ROOT], cwd=self.directory, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_gives_them_to_later_pythons_without_torch(self):
        pythons = sorted((Path.home() / ".pyenv/versions").glob("3.1[2-9]*/bin/python3")) + [
            Path("/usr/bin/python3.12"),
            Path("/usr/bin/python3.13"),
        ]
        later = next((path for path in reversed(pythons) if path.exists()), None)
        if later is None:
            self.skipTest("no Python 3.12 or later here")
        subprocess.run(
            [
                later,
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--target",
                self.directory / "later",
                self.wheel,
            ],
            check=True,
        )
        done = subprocess.run(
            [later, ROOT / "tests/python/stages_check.py", ROOT],
            cwd=self.directory,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(self.directory / "later")},
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_says_what_is_there(self):
        doctor = self.run_program("doctor")
        self.assertEqual(doctor.returncode, 0, doctor.stderr)
        self.assertIn("native", doctor.stdout)
        self.assertIn("2.13.0", self.run_program("--version").stdout)

    def test_refuses_a_torch_of_another_release(self):
        other = self.directory / "other"
        (other / "torch").mkdir(parents=True)
        (other / "torch/__init__.py").write_text("")
        (other / "torch-2.0.1.dist-info").mkdir()
        (other / "torch-2.0.1.dist-info/METADATA").write_text(
            "Metadata-Version: 2.1\nName: torch\nVersion: 2.0.1\n"
        )
        done = subprocess.run(
            [self.directory / "env/bin/rematch", "--version"],
            cwd=self.directory,
            capture_output=True,
            text=True,
            env={"PATH": str(self.directory / "env/bin"), "PYTHONPATH": str(other)},
        )
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("torch 2.13.0 is needed", done.stderr)
        self.assertIn("it has torch 2.0.1", done.stderr)

    def test_tells_pip_the_glibc_it_needs(self):
        self.assertRegex(self.wheel.name, r"-manylinux_2_\d+_x86_64\.whl$")

    def test_reports_a_usage_error_with_its_code(self):
        self.assertEqual(self.run_program("trian").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
