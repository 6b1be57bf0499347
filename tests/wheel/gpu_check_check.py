"""scripts/gpu-check on a machine without a GPU: its small form runs, and each part says what it
would do and why it cannot.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = [
    "doctor",
    "tests",
    "demo",
    "lora",
    "full",
    "windows",
    "vllm",
    "links",
    "ranks",
    "hf_tokens",
    "graphs",
    "offload",
    "speed",
]


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rematch_gpu_check_")
        self.addCleanup(directory.cleanup)
        self.out = Path(directory.name)

    def check(self, *arguments):
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/gpu-check", "--out", self.out, *arguments],
            capture_output=True,
            text=True,
        )
        report = self.out / "report.json"
        return done, json.loads(report.read_text())["parts"] if report.exists() else {}

    def test_runs_small_parts_on_the_cpu(self):
        done, parts = self.check(
            "--small", "doctor", "lora", "windows", "links", "ranks", "hf_tokens"
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(
            {name: part["result"] for name, part in parts.items()},
            dict.fromkeys(("doctor", "lora", "windows", "links", "ranks", "hf_tokens"), "passed"),
        )
        self.assertEqual(parts["links"]["numbers"]["on"], "Gloo")
        self.assertIn(parts["links"]["numbers"]["slowest link"], ("0 to 1", "1 to 0"))
        self.assertGreater(parts["links"]["numbers"]["GB/s of the slowest link"], 0)
        numbers = parts["lora"]["numbers"]
        for key in (
            "step s",
            "forward s",
            "rollout tokens/s",
            "peak GiB",
            "planned GiB",
            "trained tokens",
        ):
            self.assertGreater(numbers[key], 0, key)
        self.assertIn("| lora | passed |", (self.out / "report.md").read_text())

    def test_says_what_the_machine_lacks(self):
        done, parts = self.check("--device", "cuda:63")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(list(parts), PARTS)
        for name, part in parts.items():
            self.assertEqual(part["result"], "cannot run", name)
            self.assertIn("--device cuda:63", part["reason"])
            self.assertIn(f"{name}: {part['what']}", done.stdout)

    def test_a_failing_part_is_named_and_the_others_run(self):
        broken = self.out / "rematch"
        broken.write_text(
            f'#!/bin/sh\n[ "$1" = train ] && {{ echo "error: planted" >&2; exit 70; }}\nexec '
            f'{ROOT}/build/release/bin/rematch "$@"\n'
        )
        broken.chmod(0o755)
        done, parts = self.check("--small", "--rematch", broken, "lora", "doctor")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("planted", parts["lora"]["reason"])
        self.assertEqual(parts["doctor"]["result"], "passed")

    def test_knows_devices_by_whole_words(self):
        sys.path.insert(0, str(ROOT / "dev"))
        from gpu.machine import PEAKS, peaks_of

        for name, key in {
            "NVIDIA H100 80GB HBM3": "H100",
            "NVIDIA H100 PCIe": "H100 PCIe",
            "NVIDIA GH200 480GB": "GH200",
            "NVIDIA L4": "L4",
            "NVIDIA A100-SXM4-80GB": "A100",
            "NVIDIA A10": "A10",
            "NVIDIA GeForce RTX 4090": "4090",
        }.items():
            self.assertEqual(peaks_of(name), PEAKS[key], name)
        for name in (
            "NVIDIA L40",
            "NVIDIA A10G",
            "NVIDIA A100-PCIE-40GB",
            "NVIDIA GeForce RTX 4090 Laptop GPU",
            "NVIDIA H100 NVL",
            "",
        ):
            self.assertIsNone(peaks_of(name), name)

    def test_refuses_what_it_does_not_know(self):
        self.assertEqual(self.check("everything")[0].returncode, 2)
        done, _ = self.check("--rematch", "/nowhere")
        self.assertEqual(done.returncode, 4)
        self.assertIn("not built", done.stderr)
        self.assertEqual(
            [line.partition(":")[0] for line in self.check("--dry-run")[0].stdout.splitlines()],
            PARTS,
        )


if __name__ == "__main__":
    unittest.main()
