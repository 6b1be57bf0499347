"""Makes the kit of scripts/gpu-kit and uses it far from the checkout: doctor, quick tests, ten
steps, and a torch of another release.

For the torch of .venv; scripts/check kit names another one in REMATCH_KIT_TORCH, and in
REMATCH_KIT_PYTHON the interpreter that has it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = os.environ.get("REMATCH_KIT_TORCH", "2.13.0")
PYTHON = os.environ.get("REMATCH_KIT_PYTHON", sys.executable)


class GpuKitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="rematch_kit_"))
        cls.kit = cls.directory / "kit"
        made = subprocess.run(
            [ROOT / "scripts/gpu-kit", "--no-setup", "--torch", RELEASE, "--out", cls.kit],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def run_kit(self, *command, **environment):
        return subprocess.run(
            [self.kit / command[0], *command[1:]],
            cwd=self.directory,
            capture_output=True,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "PYTHON": PYTHON,
                "OMP_NUM_THREADS": "1",
                **environment,
            },
        )

    def test_is_small_and_brings_every_library(self):
        size = sum(path.stat().st_size for path in self.kit.rglob("*") if path.is_file())
        self.assertLess(size, 63 * 2**20)
        shown = subprocess.run(
            [
                "bash",
                "-c",
                f"source {self.kit}/env.sh; ldd {self.kit}/build/release/bin/rematch{{,-stages}}",
            ],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHON": PYTHON},
        ).stdout
        self.assertNotIn("not found", shown)
        for line in shown.splitlines():
            name, _, path = line.partition(" => ")
            if path and not name.strip().startswith(
                ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libstdc++.", "libgcc_s.")
            ):
                self.assertTrue(path.startswith(str(self.kit)) or "/site-packages/" in path, line)

    def test_starts(self):
        doctor = self.run_kit("rematch", "doctor", "--device", "cpu")
        self.assertEqual(doctor.returncode, 0, doctor.stderr)
        checked = self.run_kit("check", "--small", "tests", "--out", str(self.directory / "report"))
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertIn("nn_test", checked.stdout)

    def test_trains_ten_steps(self):
        steps = [
            "--set",
            f"training.output_dir={self.directory}/runs",
            "--set",
            "training.max_steps=10",
            "--set",
            "training.logging_steps=1",
            "--set",
            "training.per_device_train_batch_size=1",
            "--set",
            "training.effective_batch_size=1",
        ]
        done = subprocess.run(
            [self.kit / "rematch", "train", "configs/demo/stage2.yaml", "--device", "cpu", *steps],
            cwd=self.kit,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHON": PYTHON, "OMP_NUM_THREADS": "1"},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = map(
            json.loads, (self.directory / "runs/stage2/logging.jsonl").read_text().splitlines()
        )
        self.assertEqual([line["step"] for line in lines if "loss" in line], list(range(1, 11)))

    def test_refuses_a_torch_of_another_release(self):
        other = self.directory / "other/torch-2.0.1.dist-info"
        other.mkdir(parents=True)
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.0.1\n")
        done = self.run_kit("rematch", "--version", PYTHONPATH=str(other.parent))
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"this kit needs torch {RELEASE}", done.stderr)
        self.assertIn("2.0.1", done.stderr)

    def test_refuses_an_old_glibc(self):
        old = self.directory / "old"
        old.mkdir()
        (old / "getconf").write_text("#!/bin/sh\necho glibc 2.17\n")
        (old / "getconf").chmod(0o755)
        done = self.run_kit("rematch", "--version", PATH=f"{old}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, r"needs glibc 2\.\d+ or later")
        self.assertIn("2.17", done.stderr)

    def test_replaces_no_folder_but_a_kit(self):
        precious = self.directory / "precious"
        precious.mkdir()
        (precious / "thesis.txt").write_text("…")
        done = subprocess.run(
            [ROOT / "scripts/gpu-kit", "--no-setup", "--out", precious],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 2)
        self.assertTrue((precious / "thesis.txt").exists())
        self.assertEqual(
            subprocess.run(
                [ROOT / "scripts/gpu-kit", "--torch", "newest"], capture_output=True
            ).returncode,
            2,
        )


if __name__ == "__main__":
    unittest.main()
