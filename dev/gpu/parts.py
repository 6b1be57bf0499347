"""The parts of scripts/gpu-check. Each takes the Machine, proves something, and returns the numbers
it saw; it raises Failed or CannotRun.
"""

import json
import time

from machine import CannotRun, Failed

PHOTOS = "tests/golden/first_run"
PROMPT = "Find every digit and mark."
SYSTEM = "List the objects as JSON."
HF_TOKEN_LIMIT_S = 0.1


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


def random_model(machine):
    """The directory of the random model, made once, and its numbers of parameters."""
    directory, counts = machine.work / "model", machine.work / "model.json"
    if not counts.exists():
        text, _, _ = machine.run(
            [
                machine.python,
                "dev/gpu/random_model.py",
                directory,
                "demo/model",
                "--device",
                machine.device,
                *(["--small"] if machine.small else []),
            ],
            "random_model",
        )
        counts.write_text(text)
    return directory, json.loads(counts.read_text())


def records(machine):
    """A file of 64 records with the four photographs."""
    target = machine.work / "data/train.jsonl"
    if not target.exists():
        machine.run(
            [
                machine.rematch,
                "data",
                "from-coco",
                f"{PHOTOS}/instances_train.json",
                "--images",
                f"{PHOTOS}/photos",
                "--out",
                target.parent,
            ],
            "records",
        )
        target.write_text(target.read_text() * 16)
    return target


def configuration(machine, name, changes):
    """Writes a configuration of stage 2 on the random model (JSON, which is YAML)."""
    directory, _ = random_model(machine)
    data = str(records(machine))
    values = {
        "model": {
            "model": str(directory),
            "torch_dtype": "float32" if machine.small else "bfloat16",
        },
        "template": {"system": SYSTEM},
        "global_max_length": 512 if machine.small else 4096,
        "custom": {
            "trainer_variant": "rollout_matching_sft",
            "train_jsonl": data,
            "val_jsonl": data,
            "user_prompt": PROMPT,
            "coord_tokens": {"enabled": True},
            "coord_soft_ce_w1": {"enabled": True},
            "extra": {
                "rollout_matching": {
                    "rollout_backend": "native",
                    "max_new_tokens": 16 if machine.small else 256,
                }
            },
        },
        "training": {
            "output_dir": str(machine.work),
            "run_name": name,
            "max_steps": 2 if machine.small else 6,
            "learning_rate": 1e-5,
            "per_device_train_batch_size": 2 if machine.small else 16,
            "effective_batch_size": 2 if machine.small else 16,
            "packing": True,
            "logging_steps": 1,
            "logging_first_step": True,
            "save_strategy": "no",
            "save_last_epoch": False,
            "eval_strategy": "no",
            "report_to": "none",
        },
    }
    for key, value in changes.items():
        *path, last = key.split(".")
        part = values
        for step in path:
            part = part.setdefault(step, {})
        part[last] = value
    path = machine.work / f"{name}.yaml"
    path.write_text(json.dumps(values, indent=2))
    return path


def train(machine, name, changes):
    """A short stage 2; returns what its last steps took, its peak of memory and what `rematch plan`
    expected.
    """
    path = configuration(machine, name, changes)
    memory = machine.smi("memory.total")
    size = ["--gpu-memory", f"{int(memory) / 1024:.0f}"] if memory else []
    planned, _, _ = machine.run(
        [
            machine.rematch,
            "plan",
            path,
            "--json",
            "--set",
            f"global_max_length={512 if machine.small else 1024}",
            *size,
        ],
        f"{name}_plan",
    )
    plan = json.loads(planned)
    log = machine.work / name / "logging.jsonl"
    log.unlink(missing_ok=True)
    _, _, peak = machine.run([machine.rematch, "train", path, "--device", machine.device], name)
    steps = [
        line for line in map(json.loads, log.read_text().splitlines()) if "time/step_s" in line
    ]
    if not steps or any(not 0 < line["loss"] < 1e4 for line in steps):
        raise Failed(f"the losses are not sound: {[line.get('loss') for line in steps]}")
    later = steps[1:]  # the first one warms up

    def mean(key):
        return sum(line.get(key, 0.0) for line in later) / len(later)

    numbers = {"loss": round(steps[-1]["loss"], 3)}
    for key in ("step", "rollout_generate", "forward", "backward", "optimizer"):
        numbers[f"{key} s"] = round(mean(f"time/{key}_s"), 3)
    numbers |= {
        "rollout tokens/s": round(mean("rollout/gen_tokens_per_s")),
        "peak GiB": round(peak / 2**30, 2),
        "planned GiB": round(plan["peak_bytes"] / 2**30, 2),
    }
    said = [
        line
        for line in (machine.out / f"{name}.log").read_text().splitlines()
        if "attention: " in line
    ]
    if said:  # on a GPU the program says which kernel it chose
        numbers["attention"] = said[0].partition("attention: ")[2]
    if machine.on_gpu and peak > 1.15 * plan["peak_bytes"]:
        raise Failed(
            f"the run took {numbers['peak GiB']} GiB, planned were {numbers['planned GiB']}: "
            f"{numbers}"
        )
    return numbers, mean("packing/post_rollout_selected_total_len")


def utilisation(machine, numbers, tokens, num_backward):
    """Model FLOPs utilisation of forward and backward: 2 FLOPs a weight of the text layers and
    token forward, `num_backward` times that
    backward. Attention, head and vision tower come on top, so the true share is higher."""
    peaks, (_, counts) = machine.peaks(), random_model(machine)
    numbers["trained tokens"] = round(tokens)
    if peaks:
        flops = 2 * (1 + num_backward) * counts["layers"] * tokens
        numbers["FLOPs utilisation"] = round(
            flops / (numbers["forward s"] + numbers["backward s"]) / (peaks[0] * 1e12), 3
        )
    return numbers


def lora(machine):
    """With and without dropout: masks are drawn on the device, so they cost next to nothing."""
    plain, _ = train(machine, "lora_plain", {"tuner.train_type": "lora", "tuner.lora_dropout": 0})
    numbers, tokens = train(
        machine, "lora", {"tuner.train_type": "lora", "tuner.lora_dropout": 0.05}
    )
    passes = [one["forward s"] + one["backward s"] for one in (plain, numbers)]
    numbers["dropout costs"] = f"{passes[1] / passes[0] - 1:.0%}"
    if machine.on_gpu and passes[1] > 1.25 * passes[0]:
        raise Failed(f"dropout takes a pass from {passes[0]:.3f} to {passes[1]:.3f} s")
    return utilisation(machine, numbers, tokens, 1)


def windows(machine):
    """Three windows of `native`: the cache of a later one must not shrink, because torch's
    allocator keeps memory of the update.
    """
    numbers, _ = train(machine, "windows", {"training.max_steps": 3})
    lines = map(json.loads, (machine.work / "windows" / "logging.jsonl").read_text().splitlines())
    seconds = [
        line["time/rollout_generate_s"] for line in lines if "time/rollout_generate_s" in line
    ]
    if len(seconds) < 3:
        raise Failed(f"{len(seconds)} windows of 3 were answered")
    if machine.on_gpu and seconds[2] > 1.5 * seconds[1]:
        raise Failed(f"the third window took {seconds[2]:.2f} s, the second {seconds[1]:.2f} s")
    return {"windows s": " ".join(f"{one:.2f}" for one in seconds), "peak GiB": numbers["peak GiB"]}


def vllm(machine):
    text, _, _ = machine.run([machine.rematch, "doctor", "--device", machine.device], "vllm_doctor")
    if not any(
        line.split()[:1] == ["vllm"] and line.endswith(" ready") for line in text.splitlines()
    ):
        raise CannotRun(
            f"no environment with vLLM: scripts/setup-vllm; {machine.out}/vllm_doctor.out"
        )
    rollout = "custom.extra.rollout_matching."
    numbers, _ = train(
        machine,
        "vllm",
        {
            rollout + "rollout_backend": "vllm",
            rollout + "vllm.tensor_parallel_size": 1,
            "training.max_steps": 3,
        },
    )
    return numbers


def ranks(machine):
    """Two ranks over NCCL end a step at sound losses; the log says what carried their gradients."""
    if machine.num_gpus() < 2:
        raise CannotRun("two ranks over NCCL need two GPUs")
    path = configuration(machine, "ranks", {"training.zero_stage": 2, "training.max_steps": 3})
    log = machine.work / "ranks" / "logging.jsonl"
    log.unlink(missing_ok=True)
    text, _, _ = machine.run(
        [
            machine.python,
            "-m",
            "torch.distributed.run",
            "--no-python",
            "--nproc-per-node",
            "2",
            machine.rematch,
            "train",
            path,
        ],
        "ranks",
    )
    said = text + (machine.out / "ranks.log").read_text()
    if "(NCCL)" not in said:
        raise Failed(f"the ranks did not use NCCL: {machine.out}/ranks.log")
    losses = [
        line["loss"]
        for line in map(json.loads, log.read_text().splitlines())
        if "loss" in line and "time/step_s" in line
    ]
    if len(losses) < 3 or any(not 0 < loss < 1e4 for loss in losses):
        raise Failed(f"the losses are not sound: {losses}")
    return {"losses": " ".join(f"{loss:.3f}" for loss in losses)}


def hf_tokens(machine):
    """Seconds a generated token of hf: above a limit a kernel builds a plan for every length."""
    short, long = (4, 12) if machine.small else (16, 144)
    first, _ = generate(machine, "hf_tokens_short", "hf", 1, short)
    second, _ = generate(machine, "hf_tokens_long", "hf", 1, long)
    seconds = max(0.0, second - first) / (long - short)
    if machine.on_gpu and seconds > HF_TOKEN_LIMIT_S:
        raise Failed(f"{seconds:.3f} s a token, the limit is {HF_TOKEN_LIMIT_S} s")
    return {"s/token": round(seconds, 4)}


def full(machine):
    numbers, tokens = train(machine, "full", {})
    return utilisation(machine, numbers, tokens, 2)


def generate(machine, name, backend, batch, length):
    """Answers of `length` tokens to the same prompt; returns the seconds, start of the program
    included, and the answers.
    """
    directory, _ = random_model(machine)
    line = {
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}],
        "images": [],
        "max_new_tokens": length,
        "temperature": 0.0,
        "repetition_penalty": 1.0,
        "seed": 0,
    }
    text = "".join(json.dumps({"id": i, **line}) + "\n" for i in range(batch))
    dtype = "float32" if machine.small else "bfloat16"
    begin = time.monotonic()
    out, _, _ = machine.run(
        [
            machine.stages,
            "stage",
            "generate",
            "--model",
            directory,
            "--backend",
            backend,
            "--dtype",
            dtype,
            "--device",
            machine.device,
            "--batch-size",
            batch,
        ],
        name,
        text,
    )
    return time.monotonic() - begin, [json.loads(answer) for answer in out.splitlines()]


def graphs(machine):
    """native replays recorded steps on a GPU; its answers are those of hf, which does not."""
    if not machine.on_gpu:
        raise CannotRun("recorded steps exist on GPUs only")
    length = 64
    _, replayed = generate(machine, "graphs_native", "native", 8, length)
    _, plain = generate(machine, "graphs_hf", "hf", 8, length)
    log = (machine.out / "graphs_native.log").read_text()
    if "has no graphs of devices" in log:
        raise CannotRun(log.strip())
    if "without recorded graphs" in log:
        raise Failed(f"the device did not record steps: {log.strip()[:300]}")
    # Sums in bfloat16 differ by the kernel: two nearly equal logits may part two answers, seldom
    # early.
    same = sum(
        next(
            (
                i
                for i, (a, b) in enumerate(zip(x["response_token_ids"], y["response_token_ids"]))
                if a != b
            ),
            length,
        )
        for x, y in zip(replayed, plain)
    )
    share = same / (8 * length)
    if share < 0.25:
        raise Failed(f"the answers of native and hf part after {share:.0%} of their tokens")
    return {"same tokens before parting": f"{share:.0%}"}


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


def speed(machine):
    numbers, (short, long) = {}, (4, 20) if machine.small else (32, 1056)
    directory, counts = random_model(machine)
    peaks, ids = machine.peaks(), None
    for batch in (1, 4 if machine.small else 64):
        for backend in ("native", "hf"):
            name = f"speed_{backend}_{batch}"
            (first, answers), (second, more) = (
                generate(machine, f"{name}_{length}", backend, batch, length)
                for length in (short, long)
            )
            ids = answers[0]["prompt_token_ids"]
            tokens = sum(
                len(b["response_token_ids"]) - len(a["response_token_ids"])
                for a, b in zip(answers, more)
            )
            if (
                second - first < 0.2 * first
            ):  # the start of the program takes longer or shorter by as much
                numbers[f"{backend} x{batch} tokens/s"] = "too quick to be timed"
                continue
            rate = tokens / (second - first)
            numbers[f"{backend} x{batch} tokens/s"] = round(rate)
            if batch == 1 and backend == "native" and peaks:
                numbers["bandwidth share of decoding"] = round(
                    2 * (counts["layers"] + counts["embedding"]) * rate / (peaks[1] * 1e9), 3
                )
        out, code, _ = machine.run(
            [
                machine.python,
                "dev/gpu/transformers_speed.py",
                directory,
                batch,
                short,
                long,
                machine.device,
            ],
            f"speed_transformers_{batch}",
            json.dumps(ids),
            codes=(0, 77),
        )
        if code == 0:
            numbers[f"transformers x{batch} tokens/s"] = round(
                json.loads(out.splitlines()[-1])["tokens_per_s"]
            )
        else:
            numbers["transformers"] = "not installed"
    return numbers


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
    "ranks": (
        "stage 2 on two ranks that exchange gradients over NCCL, where there are two GPUs",
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
