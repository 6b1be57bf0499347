#!/usr/bin/env python3
"""Runs the whole program under AddressSanitizer and UBSan, over good models and over damaged ones.

    scripts/check asan [--no-build] [--damages N] [--seed S] [--program PATH]

Builds the preset asan-torch (twenty minutes of one core), then
  - trains stage 1, stage 2 with both local backends, LoRA and the second model family, resumes,
    evaluates, predicts, merges, checks;
  - gives `train`, `eval`, `rollout` and `predict` image processors that do not fit the vision
    tower;
  - damages a file of the model or of the data N times (30 when not given) by bytes that change,
    vanish or come twice.
Fails on a finding of a sanitizer and on an exit code that no error of the user has. libtorch is not
instrumented: its own accesses are checked only where they go through the allocator, its leaks and
its containers are not.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
PROGRAM = ROOT / "build/asan-torch/bin/rematch"
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:alloc_dealloc_mismatch=0"
    ":detect_stack_use_after_return=1:strict_string_checks=1"
    ":allocator_may_return_null=1:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
    "OMP_NUM_THREADS": "1",
}
FINDING = re.compile(r"ERROR: AddressSanitizer|runtime error:|DEADLYSIGNAL")
USER_ERRORS = {2, 3, 4}
DATA_FILES = ("train.jsonl", "val.jsonl", "images/0.png", "images/3.png")

CONFIG = """
global_max_length: 1024
model: {{model: {model}, torch_dtype: float32}}
template: {{system: List.}}
training:
  {{output_dir: out, run_name: {name}, max_steps: 2, per_device_train_batch_size: 2,
    gradient_accumulation_steps: 1, learning_rate: 1.0e-3,
   packing: true, logging_steps: 1, eval_strategy: "no", save_strategy: steps, save_steps: 1,
   resume_from_checkpoint: latest, report_to: tensorboard}}
custom:
  trainer_variant: {variant}
  train_jsonl: train.jsonl
  val_jsonl: val.jsonl
  val_sample_limit: 2
  user_prompt: Objects
  extra: {{rollout_matching: {{rollout_backend: {backend}, rollout_generate_batch_size: 2,
    max_new_tokens: 8}}}}
{more}
"""


class Runs:
    """A directory with a copy of model and data, in which the program runs."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.num_runs, self.findings = 0, []
        self.codes = {}

    def lay_out(self, model="tiny_tied"):
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.copytree(GOLDEN / "model" / model, self.directory / "model")
        shutil.copytree(GOLDEN / "e2e/images", self.directory / "images")
        for name in ("train.jsonl", "val.jsonl"):
            shutil.copy(GOLDEN / "e2e" / name, self.directory)

    def config(self, name, variant="rollout_matching_sft", backend="hf", more=""):
        path = self.directory / f"{name}.yaml"
        path.write_text(
            CONFIG.format(model="model", name=name, variant=variant, backend=backend, more=more)
        )
        return path.name

    def run(self, what, arguments, expected):
        """`rematch ARGUMENTS`; notes a sanitizer's finding and an exit code that is not
        expected.
        """
        process = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.directory,
            env={**os.environ, **OPTIONS},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=600,
        )
        self.num_runs += 1
        self.codes[process.returncode] = self.codes.get(process.returncode, 0) + 1
        if FINDING.search(process.stderr) or process.returncode not in expected:
            self.findings.append(what)
            found = FINDING.search(process.stderr)
            text = process.stderr[found.start() :] if found else process.stderr
            print(
                f"FAULT: {what}: rematch {' '.join(arguments)}: exit {process.returncode}\n"
                f"{text[:6000]}\n",
                flush=True,
            )


def whole_runs(runs):
    """Everything that a good model goes through."""
    for model in ("tiny_tied", "windows_tied"):
        runs.lay_out(model)
        configs = [
            runs.config("sft", "sft"),
            runs.config("hf"),
            runs.config("native", backend="native"),
            runs.config("lora", "sft", more="tuner: {train_type: lora, lora_rank: 4}"),
        ]
        for config in configs:
            runs.run(f"{model}: train", ["train", config], {0})
        runs.run(
            f"{model}: train resumed", ["train", "hf.yaml", "--set", "training.max_steps=3"], {0}
        )
        for command in ("check", "plan", "eval", "rollout"):
            runs.run(f"{model}: {command}", [command, "native.yaml"], {0})
        runs.run(
            f"{model}: predict",
            ["predict", "out/hf/checkpoint-2", "images", "--draw", "drawn"],
            {0},
        )
        runs.run(f"{model}: merge", ["merge", "out/lora/checkpoint-2", "--out", "merged"], {0})
        runs.run(f"{model}: data check", ["data", "check", "train.jsonl", "--decode"], {0})
        runs.run(f"{model}: data show", ["data", "show", "train.jsonl", "--out", "sheet.png"], {0})


def misfits(runs):
    """Processors that do not fit the tower, towers that do not fit the weights."""
    changes = [
        ("preprocessor_config.json", (), key, value)
        for key, value in (
            ("patch_size", 8),
            ("patch_size", 32),
            ("temporal_patch_size", 1),
            ("temporal_patch_size", 4),
            ("merge_size", 1),
            ("merge_size", 4),
            ("image_mean", [0.5]),
        )
    ]
    changes += [
        ("config.json", ("vision_config",), key, value)
        for key, value in (
            ("patch_size", 8),
            ("temporal_patch_size", 1),
            ("spatial_merge_size", 1),
            ("in_channels", 1),
            ("hidden_size", 48),
            ("depth", 5),
            ("num_heads", 5),
            ("out_hidden_size", 16),
        )
    ]
    for name, path, key, value in changes:
        runs.lay_out()
        file = runs.directory / "model" / name
        whole = json.loads(file.read_text())
        part = whole
        for member in path:
            part = part[member]
        part[key] = value
        file.write_text(json.dumps(whole))
        config = runs.config("misfit", backend="native")
        for command in (
            ["train", config],
            ["eval", config],
            ["rollout", config],
            ["predict", "model", "images", "--user", "Objects"],
        ):
            runs.run(f"{name} {key}={value}", command, USER_ERRORS)


def damage(path, draw):
    """Changes bytes of a file, drops some, or doubles some; says what it did."""
    content = bytearray(path.read_bytes())
    at, size = draw.randrange(len(content)), draw.choice((1, 2, 8, 64))
    kind = draw.choice(("change", "drop", "double", "cut"))
    if kind == "change":
        content[at : at + size] = draw.randbytes(size)
    elif kind == "drop":
        del content[at : at + size]
    elif kind == "double":
        content[at:at] = content[at : at + size]
    else:
        del content[at:]
    path.write_bytes(content)
    return f"{kind} {size} bytes at {at} of {path.name}"


def damages(runs, count, draw):
    for _ in range(count):
        runs.lay_out()
        files = sorted(path for path in (runs.directory / "model").iterdir() if path.is_file())
        if draw.random() < 0.3:
            files = [runs.directory / name for name in DATA_FILES]
        what = damage(draw.choice(files), draw)
        config = runs.config("damaged", backend=draw.choice(("hf", "native")))
        runs.run(
            what, [draw.choice(("train", "eval", "rollout", "check")), config], {0} | USER_ERRORS
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--no-build", action="store_true", help="take the program as it is")
    parser.add_argument("--damages", type=int, default=30)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    arguments = parser.parse_args()
    if not arguments.no_build:
        for command in (
            ["cmake", "--preset", "asan-torch"],
            ["cmake", "--build", "--preset", "asan-torch"],
        ):
            subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    if not arguments.program.exists():
        sys.exit(f"{arguments.program} is not built: run scripts/check asan without --no-build")
    with tempfile.TemporaryDirectory(prefix="rematch-asan-") as directory:
        runs = Runs(arguments.program.resolve(), pathlib.Path(directory) / "run")
        whole_runs(runs)
        misfits(runs)
        damages(runs, arguments.damages, random.Random(arguments.seed))
    codes = ", ".join(f"{count} with {code}" for code, count in sorted(runs.codes.items()))
    print(f"{runs.num_runs} runs ended: {codes}; {len(runs.findings)} findings")
    sys.exit(1 if runs.findings else 0)


if __name__ == "__main__":
    main()
