#!/usr/bin/env python3
"""Tries vLLM engines over several ranks on this CPU: what is too long for CI. Some minutes a case;
vLLM as scripts/setup-vllm installs it.

usage: .venv/bin/python dev/vllm/try_groups.py [CASE…]     cases: pairs default interrupt kill
failure (all of them without a name)
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
REMATCH = ROOT / "build/release/bin/rematch"
DEMO = ROOT / "demo/model"
GOLDEN = ROOT / "tests/golden/e2e"


def configuration(
    directory,
    *,
    backend="vllm",
    ranks_an_engine=2,
    accumulation=1,
    steps=3,
    tokens=48,
    model=DEMO,
    more="",
):
    engine = f"tensor_parallel_size: {ranks_an_engine}, " if ranks_an_engine else ""
    path = directory / "run.yaml"
    path.write_text(f"""
global_max_length: 1024
model: {{model: {model}, torch_dtype: float32}}
training: {{output_dir: out, run_name: run, max_steps: {steps}, per_device_train_batch_size: 1, gradient_accumulation_steps: {accumulation},
  learning_rate: 1.0e-3, logging_steps: 1, eval_strategy: "no", report_to: none{more}}}
custom: {{trainer_variant: rollout_matching_sft, train_jsonl: {GOLDEN}/train.jsonl, val_jsonl: {GOLDEN}/val.jsonl, extra: {{rollout_matching: {{
  rollout_backend: {backend}, max_new_tokens: {tokens}, vllm: {{{engine}gpu_memory_utilization: 0.4, max_num_seqs: 8}}}}}}}}
""")
    return path


def begin(directory, config, ranks, *more, environment=None):
    torchrun = (
        [ROOT / ".venv/bin/torchrun", "--no-python", "--nproc-per-node", str(ranks), *more]
        if ranks > 1
        else []
    )
    return subprocess.Popen(
        [*torchrun, REMATCH, "train", config, "--device", "cpu"],
        cwd=directory,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
    )


def end(process, code):
    try:
        text = process.communicate(timeout=1800)[1]
    except BaseException:
        process.terminate()
        raise
    assert process.returncode == code, f"exit code {process.returncode}, not {code}:\n{text}"
    return text


def log(directory):
    lines = [
        json.loads(line) for line in (directory / "out/run/logging.jsonl").read_text().splitlines()
    ]
    return [
        {
            key: value
            for key, value in line.items()
            if not key.startswith("time/") and "per_s" not in key
        }
        for line in lines
    ]


def wait_for(path, process):
    while not path.exists() or path.is_file() and not path.stat().st_size:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)


def expect_same_start(found, expected):
    """Until one near tie of two logits sets the runs apart, which is not before the second step."""
    for step, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one["rollout/gen_new_tokens_total"] != other["rollout/gen_new_tokens_total"]:
            assert step > 0, "the first answers differ"
            return
        for key in one.keys() & other.keys():
            assert one[key] == other[key], f"step {step + 1}: {key} is {one[key]}, not {other[key]}"


def pairs(directory):
    """Two engines of two ranks: what one process does with hf."""
    (directory / "hf").mkdir()
    end(
        begin(directory / "hf", configuration(directory / "hf", backend="hf", accumulation=4), 1), 0
    )
    end(begin(directory, configuration(directory), 4), 0)
    expect_same_start(log(directory), log(directory / "hf"))


def default(directory):
    """The default tensor_parallel_size, 4, on four ranks: a random model with 8 heads, as the
    demonstration's has 6.
    """
    import torch
    from safetensors.torch import load_file, save_file

    model = directory / "model"
    shutil.copytree(DEMO, model)
    config = json.loads((model / "config.json").read_text())
    text = config["text_config"]
    text["num_attention_heads"], text["num_key_value_heads"] = 8, 4
    config["dtype"] = text["dtype"] = "float32"
    (model / "config.json").write_text(json.dumps(config))
    width, hidden = text["head_dim"], text["hidden_size"]
    torch.manual_seed(5)
    heads = {
        "q_proj": (8 * width, hidden),
        "k_proj": (4 * width, hidden),
        "v_proj": (4 * width, hidden),
        "o_proj": (hidden, 8 * width),
    }
    tensors = {}
    for name, value in load_file(model / "model.safetensors").items():
        shape = (
            heads.get(name.split(".")[-2], value.shape) if "language_model" in name else value.shape
        )
        tensors[name] = (
            torch.ones(shape)
            if value.dim() == 1 and name.endswith("weight")
            else torch.randn(shape) * 0.08
        )
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    (directory / "hf").mkdir()
    end(
        begin(
            directory / "hf",
            configuration(directory / "hf", backend="hf", accumulation=4, steps=2, model=model),
            1,
        ),
        0,
    )
    end(
        begin(directory, configuration(directory, ranks_an_engine=None, steps=2, model=model), 4), 0
    )
    expect_same_start(log(directory), log(directory / "hf"))


def interrupt(directory):
    """SIGINT while tokens are generated: all save."""
    run = begin(directory, configuration(directory, steps=100000, tokens=300), 2)
    wait_for(directory / "out/run/logging.jsonl", run)
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    start = time.time()
    end(run, 1)
    assert list((directory / "out/run").glob("checkpoint-*")), "no checkpoint"
    print(f"  all had ended after {time.time() - start:.1f} s")


def kill(directory):
    """A killed rank is named, and a restart ends as the undisturbed run does."""
    (directory / "whole").mkdir()
    save = ", save_strategy: steps, save_steps: 2"
    end(begin(directory / "whole", configuration(directory / "whole", steps=6, more=save), 2), 0)
    resuming = save + ", resume_from_checkpoint: latest"
    run = begin(
        directory, configuration(directory, steps=6, more=resuming), 2, "--max-restarts", "1"
    )
    wait_for(directory / "out/run/checkpoint-2", run)
    ranks = subprocess.run(
        ["pgrep", "-P", str(run.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    text = end(run, 0)
    assert "failed (exitcode: -9) local_rank: 1" in text, text
    assert "rank 1" in text, text
    weights = "out/run/checkpoint-6/model.safetensors"
    assert (directory / weights).read_bytes() == (directory / "whole" / weights).read_bytes(), (
        "other weights"
    )


def failure(directory):
    """An exception in one rank's vLLM: told by that rank, and all end with the state saved."""
    (directory / "sitecustomize.py").write_text("""
import os, sys, threading, time
def plant():
    while "vllm.v1.engine.llm_engine" not in sys.modules or not hasattr(sys.modules["vllm.v1.engine.llm_engine"], "LLMEngine"):
        time.sleep(0.1)
    engine = sys.modules["vllm.v1.engine.llm_engine"].LLMEngine
    step, count = engine.step, [0]
    def failing(self):
        count[0] += 1
        if count[0] == 70:
            raise RuntimeError("planted")
        return step(self)
    engine.step = failing
if os.environ.get("RANK") == "1":
    threading.Thread(target=plant, daemon=True).start()
""")
    run = begin(
        directory,
        configuration(directory, steps=100),
        2,
        environment={"PYTHONPATH": str(directory)},
    )
    text = end(run, 1)
    assert "RuntimeError: planted" in text and "rank 1: vLLM failed while generating" in text, text
    assert list((directory / "out/run").glob("checkpoint-*")), "no checkpoint"


def main(names):
    cases = {case.__name__: case for case in (pairs, default, interrupt, kill, failure)}
    for name in names or cases:
        with tempfile.TemporaryDirectory() as directory:
            start = time.time()
            cases[name](pathlib.Path(directory))
            print(f"{name}: {cases[name].__doc__} [{time.time() - start:.0f} s]", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
