"""One optimizer step on one long row: the program's M-step against a plain transformers step with
full logits.

mstep.py BENCH_MSTEP [--tokens 8000] [--steps 2] [--json OUT]   BENCH_MSTEP is the program built
from bench/mstep.cc

Writes a random checkpoint (text tower of 31 M parameters, 150 000-token vocabulary, tied head), one
row of random tokens whose second half is
supervised, and runs both sides on them, each in a separate process: forward, loss, backward,
clipping, AdamW. Losses of every step must be
equal to 1e-4, the second one after an update, or the bench fails. Memory is the resident size of
the process at its highest during the steps,
with what it has swapped out if there is swap: then compare its CPU seconds, not its seconds.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

HIDDEN, VOCAB = 512, 150_000


def write_inputs(directory, tokens):
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    text = dict(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=2048,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=64,
        rms_norm_eps=1e-6,
        pad_token_id=0,
        tie_word_embeddings=True,
        max_position_embeddings=32768,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 5000000.0,
            "mrope_section": [12, 10, 10],
            "mrope_interleaved": True,
        },
    )
    vision = dict(
        depth=1,
        hidden_size=32,
        intermediate_size=32,
        num_heads=2,
        patch_size=16,
        spatial_merge_size=2,
        temporal_patch_size=2,
        num_position_embeddings=36,
        out_hidden_size=HIDDEN,
        deepstack_visual_indexes=[0],
    )
    config = Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=1,
        video_token_id=2,
        vision_start_token_id=3,
        vision_end_token_id=4,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model = Qwen3VLForConditionalGeneration(config).float()
    model.save_pretrained(directory)
    body = sum(
        p.numel()
        for n, p in model.model.language_model.named_parameters()
        if "embed_tokens" not in n
    )
    draw = random.Random(1)
    token_ids = [draw.randrange(10, VOCAB) for _ in range(tokens)]
    labels = [-100 if i < tokens // 2 else token for i, token in enumerate(token_ids)]
    (directory / "row.json").write_text(json.dumps({"token_ids": token_ids, "labels": labels}))
    return body


def status_mib(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0


def plain(directory, steps):
    """The other side: a training script with transformers."""
    import torch
    from transformers import Qwen3VLForConditionalGeneration

    torch.set_num_threads(2)
    model = Qwen3VLForConditionalGeneration.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="sdpa"
    ).train()
    row = json.loads((directory / "row.json").read_text())
    token_ids, labels = torch.tensor([row["token_ids"]]), torch.tensor([row["labels"]])
    parameters = [p for n, p in model.named_parameters() if not n.startswith("model.visual")]
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith("model.visual"))
    optimizer = torch.optim.AdamW(
        parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    result = {
        "threads": torch.get_num_threads(),
        "losses": [],
        "seconds": [],
        "cpu_s": [],
        "optimizer_s": [],
        "before_mib": status_mib("VmRSS"),
    }
    open("/proc/self/clear_refs", "w").write("5")
    for _ in range(steps):
        begin, cpu = time.perf_counter(), time.process_time()
        output = model(input_ids=token_ids, labels=labels, use_cache=False)
        output.loss.backward()
        loss = output.loss.item()
        del output
        update = time.perf_counter()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        end = time.perf_counter()
        result["seconds"].append(end - begin)
        result["cpu_s"].append(time.process_time() - cpu)
        result["optimizer_s"].append(end - update)
        result["losses"].append(loss)
    result["peak_mib"] = status_mib("VmHWM")
    print(json.dumps(result))


def run(command):
    environment = dict(os.environ, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2", HF_HUB_OFFLINE="1")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=err, text=True)
        held, swapped = 0, 0  # swapped memory counts as held
        while process.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                continue
            resident, paged = (
                int(found[1]) / 1024
                if (found := re.search(rf"^{field}:\s+(\d+)", status, re.M))
                else 0
                for field in ("VmRSS", "VmSwap")
            )
            held, swapped = max(held, resident + paged), max(swapped, paged)
            time.sleep(0.02)
        out.seek(0), err.seek(0)
        if process.returncode == -9:
            sys.exit(
                f"{' '.join(map(str, command))} was killed with {held:.0f} MiB: this machine has "
                "too little memory for it (swap may help)"
            )
        if process.returncode != 0:
            sys.exit(
                f"{' '.join(map(str, command))} ended with {process.returncode}\n"
                f"{err.read()[-3000:]}"
            )
        one = json.loads(out.read().strip().splitlines()[-1])
    return dict(
        one,
        peak_mib=max(one["peak_mib"], held) if swapped else one["peak_mib"],
        swapped_mib=swapped,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?")
    parser.add_argument("--tokens", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--plain", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        return plain(pathlib.Path(options.plain), options.steps)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        body = write_inputs(directory, options.tokens)
        ours = [
            options.program,
            "--model",
            name,
            "--row",
            str(directory / "row.json"),
            "--steps",
            str(options.steps),
        ]
        sides = {
            "ours": run(ours),
            "transformers": run(
                [sys.executable, __file__, "--plain", name, "--steps", str(options.steps)]
            ),
            "ours, checkpointing": run(ours + ["--checkpointing"]),
        }
    other = sides["transformers"]
    report = {
        "tokens": options.tokens,
        "supervised": options.tokens // 2,
        "vocabulary": VOCAB,
        "body_parameters": body,
        "sides": sides,
    }
    print(
        f"{options.tokens} tokens, {options.tokens // 2} supervised, vocabulary {VOCAB}, "
        f"{body / 1e6:.1f} M parameters outside the embedding, "
        f"{other['threads']} threads"
    )
    print(
        f"{'':<22}{'s/step':>10}{'cpu s':>9}{'optimizer s':>13}{'peak MiB':>11}"
        f"{'beyond start':>14}{'faster':>9}{'cpu':>8}{'memory':>9}   losses"
    )
    worst = 0.0
    for side, one in sides.items():
        seconds, beyond = min(one["seconds"]), one["peak_mib"] - one["before_mib"]
        one["faster_by"] = min(other["seconds"]) / seconds
        one["less_cpu_by"] = min(other["cpu_s"]) / min(one["cpu_s"])
        one["memory_below_by"] = other["peak_mib"] / one["peak_mib"]
        one["beyond_start_below_by"] = (other["peak_mib"] - other["before_mib"]) / beyond
        worst = max([worst] + [abs(a - b) / b for a, b in zip(one["losses"], other["losses"])])
        print(
            f"{side:<22}{seconds:>10.2f}{min(one['cpu_s']):>9.1f}{min(one['optimizer_s']):>13.2f}"
            f"{one['peak_mib']:>11.0f}{beyond:>14.0f}"
            f"{one['faster_by']:>8.2f}x{one['less_cpu_by']:>7.2f}x"
            f"{one['memory_below_by']:>8.2f}x{' (swapped)' if one['swapped_mib'] else ''}   "
            f"{', '.join(f'{loss:.6f}' for loss in one['losses'])}"
        )
    report["worst_loss_difference"] = worst
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    if worst > 1e-4:
        sys.exit(f"the losses differ by {worst:.1e}: these numbers compare different work")


if __name__ == "__main__":
    main()
