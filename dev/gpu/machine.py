"""The machine that scripts/gpu-check examines: what it has, and programs run on it with their peak
memory.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

# Dense bfloat16 TFLOP/s and GB/s by what nvidia-smi calls the device; the first whose words occur
# counts. From the vendor's data sheets.
PEAKS = {
    "GH200": (989, 4000),
    "H200": (989, 4800),
    "H100 PCIe": (756, 2000),
    "H100": (989, 3350),
    "B200": (2250, 8000),
    "A100": (312, 2039),
    "L40S": (362, 864),
    "L4": (121, 300),
    "A10": (125, 600),
    "4090": (165, 1008),
    "5090": (210, 1792),
    "3090": (71, 936),
}
# Others that share a word with one of them: slower.
OTHERS = {"Laptop", "NVL", "D", "40GB"}


class Failed(Exception):
    """What was to be proved does not hold."""


class CannotRun(Exception):
    """This machine lacks what a part needs."""


def python_with_torch(root):
    """An interpreter that imports torch: the checkout's, or the one that runs this."""
    for python in (root / ".venv/bin/python", Path(sys.executable)):
        if (
            python.exists()
            and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
        ):
            return python
    return None


def peaks_of(name):
    """(TFLOP/s, GB/s) of a device by its name, or None: an A10G is no A10, an L40 no L4."""
    words = re.split("[ -]", name)
    if OTHERS.intersection(words):
        return None
    return next((peak for key, peak in PEAKS.items() if set(key.split()) <= set(words)), None)


class Machine:
    """Everything a part needs. `missing` says why nothing can be proved here; empty = something
    can.
    """

    def __init__(self, root, rematch, device, small, out):
        self.root, self.rematch, self.device, self.small, self.out = (
            root,
            rematch,
            device,
            small,
            out,
        )
        self.work = out / "work"
        self.work.mkdir(exist_ok=True)
        self.deadline = time.monotonic() + 60
        self.python = python_with_torch(root)
        doctor = subprocess.run(
            [rematch, "doctor", "--device", device], capture_output=True, text=True
        )
        # Its first problem is the device's, if the device is one.
        self.missing = (
            ""
            if doctor.returncode == 0
            else " ".join(line.strip() for line in doctor.stderr.splitlines()[:3])
        )
        if not self.missing and self.python is None:
            self.missing = "no Python with torch: neither .venv nor the one that runs this"

    @property
    def stages(self):
        """The program of the stages, next to rematch: built with the tests and not installed."""
        program = Path(self.rematch).with_name("rematch-stages")
        if not program.exists():
            raise CannotRun(f"{program} is not built: scripts/build")
        return program

    @property
    def on_gpu(self):
        return self.device.startswith("cuda")

    def smi(self, query):
        if not self.on_gpu or shutil.which("nvidia-smi") is None:
            return None
        index = self.device.partition(":")[2] or "0"
        found = subprocess.run(
            [
                "nvidia-smi",
                f"--query-gpu={query}",
                "--format=csv,noheader,nounits",
                f"--id={index}",
            ],
            capture_output=True,
            text=True,
        )
        return found.stdout.strip() if found.returncode == 0 else None

    def num_gpus(self):
        if not self.on_gpu or shutil.which("nvidia-smi") is None:
            return 0
        return len(
            subprocess.run(
                ["nvidia-smi", "--list-gpus"], capture_output=True, text=True
            ).stdout.splitlines()
        )

    def facts(self):
        version = subprocess.run(
            [self.rematch, "--version"], capture_output=True, text=True
        ).stdout.strip()
        return {
            "program": version.replace("\n", ", "),
            "device": self.smi("name") or self.device,
            "driver": self.smi("driver_version") or "none",
            "memory MiB": self.smi("memory.total") or "unknown",
        }

    def peaks(self):
        """(TFLOP/s, GB/s) of the device, or None where it is not known."""
        return peaks_of(self.smi("name") or "")

    def run(self, command, name, text=None, codes=(0,)):
        """Runs a program to the part's deadline; its output goes to OUT/NAME.log.

        Returns its standard output, its code, and its peak of memory in bytes: of the device,
        polled and beyond what was in use before; on a
        CPU the resident size.
        Raises Failed for another exit code.
        """
        before = int(self.smi("memory.used") or 0)
        peak, done = [before], threading.Event()

        def poll():
            while not done.wait(0.1):
                peak[0] = max(peak[0], int(self.smi("memory.used") or 0))

        log = self.out / f"{name}.log"
        environment = {**os.environ, "REMATCH_TEST_ROOT": str(self.root)}
        with open(log, "w") as errors, open(log.with_suffix(".out"), "w+") as output:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                text=True,
                cwd=self.root,
                env=environment,
            )
            if self.on_gpu:
                threading.Thread(target=poll, daemon=True).start()
            resident = [0]
            watcher = threading.Thread(
                target=self._watch_resident, args=(process.pid, resident, done), daemon=True
            )
            watcher.start()
            try:
                if text is not None:
                    process.stdin.write(text)
                process.stdin.close()
                process.wait(timeout=max(1.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            finally:
                done.set()
                watcher.join()
            output.seek(0)
            answer = output.read()
        if process.returncode not in codes:
            tail = " ".join(log.read_text().split("\n")[-6:])
            raise Failed(
                f"{Path(command[0]).name} ended with {process.returncode} ({log}): "
                f"{tail.strip()[:400]}"
            )
        return (
            answer,
            process.returncode,
            (peak[0] - before) * 2**20 if self.on_gpu else resident[0],
        )

    @staticmethod
    def _watch_resident(pid, resident, done):
        """The kernel's own high-water mark, read until the process ends."""
        while True:
            try:
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        resident[0] = max(resident[0], int(line.split()[1]) * 1024)
            except OSError:
                return
            if done.wait(0.05):
                return
