"""The parts of scripts/gpu-check. Each takes the Machine, proves something, and returns the numbers
it saw; it raises Failed or CannotRun.
"""

import json

from decoding_parts import graphs, hf_tokens, speed
from machine import CannotRun, Failed
from rank_parts import links, ranks
from training_parts import full, lora, vllm, windows


def doctor(machine):
    text, _, _ = machine.run([machine.rematch, "doctor", "--device", machine.device], "doctor")
    ready = [line.split()[0] for line in text.splitlines() if line.endswith(" ready")]
    for backend in ("hf", "native"):
        if backend not in ready:
            raise Failed(f"backend {backend} cannot run here: {machine.out}/doctor.out")
    return {"device": text.splitlines()[0].partition(" ")[2].strip(), "ready": " ".join(ready)}


def tests(machine):
    folder = machine.root / "build/release/tests"
    programs = [
        *sorted(folder.glob("*gpu_test")),
        *sorted(folder.glob("quick/*")),
    ]  # quick/: a kit's
    if not programs:
        raise CannotRun("no tests for GPUs are built: scripts/build")
    numbers = {}
    for program in programs:
        text, _, _ = machine.run([program], program.name)
        passed, skipped = text.count("[       OK ]"), text.count("[  SKIPPED ] ") // 2
        if machine.on_gpu and skipped:
            raise Failed(
                f"{program.name} skipped {skipped} tests: {machine.out}/{program.name}.out"
            )
        numbers[program.name] = f"{passed} passed, {skipped} skipped"
    return numbers


def demo(machine):
    scenes = machine.root / "demo/out/crowded"
    if not (scenes / "pages.json").exists():
        _, code, _ = machine.run(
            [
                machine.python,
                "dev/demo/make_pages.py",
                scenes,
                "--split",
                "crowded",
                "--num-train",
                "3000",
                "--num-val",
                "512",
                "--seed",
                "0",
            ],
            "scenes",
            codes=(0, 1),
        )
        if code != 0:
            raise CannotRun(
                "the scenes of the demonstration are not made, and making them needs pillow: pip "
                "install pillow, or scripts/demo"
            )
    runs, steps, samples = (
        machine.work / "demo",
        (1 if machine.small else 240),
        (8 if machine.small else 512),
    )
    common = [
        "configs/demo/stage2.yaml",
        "--device",
        machine.device,
        "--set",
        f"training.output_dir={runs}",
        "--set",
        f"custom.val_sample_limit={samples}",
    ]
    scores = {}

    def evaluate(name, model):
        machine.run(
            [
                machine.rematch,
                "eval",
                *common,
                "--set",
                f"model.model={model}",
                "--set",
                f"training.run_name={name}",
            ],
            f"demo_{name}",
        )
        scores[name] = json.loads((runs / name / "eval_results.json").read_text())[
            "eval_rollout_f1_iou50"
        ]

    evaluate("before", "demo/model")
    machine.run(
        [
            machine.rematch,
            "train",
            *common,
            "--set",
            "training.run_name=stage2",
            "--set",
            f"training.max_steps={steps}",
        ],
        "demo_train",
    )
    evaluate("after", runs / f"stage2/checkpoint-{steps}")
    if not machine.small and scores["after"] < scores["before"] + 0.2:
        raise Failed(
            f"F1 at IoU 0.5 went from {scores['before']:.3f} to {scores['after']:.3f}; "
            "docs/demo.md tells what to expect"
        )
    return {
        "F1 before": round(scores["before"], 3),
        "after": round(scores["after"], 3),
        "steps": steps,
    }


def offload(machine):
    """Training state moves to the host and back around vLLM's rollouts; the tests for it are among
    those of `tests`.
    """
    if not machine.on_gpu:
        raise CannotRun("training state is in host memory already")
    program = machine.root / "build/release/tests/offload_gpu_test"
    if not program.exists():
        raise CannotRun("offload_gpu_test is not built: scripts/build")
    text, _, _ = machine.run([program], "offload")
    return {"passed": text.count("[       OK ]")}


# name: a description for people who cannot run it; the part
PARTS = {
    "doctor": ("lists the device and the backends that can run on it", doctor),
    "tests": ("runs the tests that need a GPU", tests),
    "demo": (
        "trains the demonstration for 240 steps and compares its scores before and after",
        demo,
    ),
    "lora": (
        "stage 2 with LoRA on a random Qwen3-VL of two billion parameters in bfloat16; time "
        "split, FLOPs utilisation, peak memory against "
        "`rematch plan`; without dropout and with it",
        lora,
    ),
    "full": ("the same with all parameters trained", full),
    "windows": (
        "three windows of native: the later ones are answered as quickly as the second",
        windows,
    ),
    "vllm": (
        "stage 2 with rollouts from vLLM, where scripts/setup-vllm has made its environment",
        vllm,
    ),
    "links": (
        "sends 1 GB between all ranks and over each link alone, where there are two GPUs; names "
        "the slowest link",
        links,
    ),
    "ranks": (
        "stage 2 on two ranks over NCCL that share optimizer state and gradients (zero_stage 2), "
        "and stage 1 with LoRA on shared frozen weights (zero_stage 3), where there are two GPUs",
        ranks,
    ),
    "hf_tokens": ("the time of a generated token of hf, with a limit", hf_tokens),
    "graphs": ("decodes by recorded steps and compares the answers with those of hf", graphs),
    "offload": ("moves training state to the host and back", offload),
    "speed": (
        "tokens per second of native, hf and transformers' generate on the same model; bandwidth "
        "share of decoding",
        speed,
    ),
}
