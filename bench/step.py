#!/usr/bin/env python3
"""A whole stage-2 step on the demonstration's data, 24 images per window: the program with `native`
and with `hf` rollouts against a step in Python
(transformers' generate, parse, match and targets in Python, forward and backward on a padded batch,
AdamW).

usage: bench/step.py build/release/bin/rematch [--steps 4] [--rounds 3] [--samples 24] [--threads 2]
[--json OUT]   needs demo/out/crowded (scripts/demo)

Every step of every side works on the same 24 samples with (nearly) the same weights: the learning
rate is next to nothing, so that rollouts,
segments and losses are the same work, and the losses must agree or the bench fails. Sides take
turns; the first step of each turn is left out,
the median of the turns counts.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA, MODEL, CONFIG = (
    ROOT / "demo/out/crowded/train.jsonl",
    ROOT / "demo/model",
    "configs/demo/stage2.yaml",
)
SYSTEM, USER, MAX_NEW_TOKENS, SIGMA = (
    "List the objects as JSON.",
    "Find every digit and mark.",
    200,
    8.0,
)
ROLLOUT = "custom.extra.rollout_matching"
PHASES = {
    "rollout": ["time/rollout_generate_s"],
    "parse, match": ["time/rollout_parse_match_s"],
    "encode, pack": ["time/rollout_teacher_encode_s", "time/post_rollout_pack_s"],
    "forward": ["time/forward_s"],
    "backward": ["time/backward_s"],
    "optimizer": ["time/optimizer_s"],
}


# The step in Python.


def points_of(kind, bins):
    if kind == "poly":
        return [(bins[i], bins[i + 1]) for i in range(0, len(bins), 2)]
    x1, y1, x2, y2 = bins
    x1, x2, y1, y2 = min(x1, x2), max(x1, x2), min(y1, y2), max(y1, y2)
    return [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]


def box_of(kind, bins):
    points = points_of(kind, bins)
    return (
        min(x for x, _ in points),
        min(y for _, y in points),
        max(x for x, _ in points),
        max(y for _, y in points),
    )


def box_iou(a, b):
    inter = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter
    return inter / union if union > 0 else 0.0


def transported(predicted, wanted):
    """Targets for the predicted vertices: entropic transport of the ground truth's onto them."""
    import numpy

    from_points, to_points = (
        numpy.array(points_of(*predicted), float),
        numpy.array(points_of(*wanted), float),
    )
    kernel = numpy.exp(
        numpy.clip(
            -numpy.linalg.norm(from_points[:, None] - to_points[None], axis=2) / 10.0, -50, 50
        )
    )
    u, v = numpy.ones(len(from_points)), numpy.ones(len(to_points))
    for _ in range(30):
        u = (1 / len(u)) / (kernel @ v)
        v = (1 / len(v)) / (kernel.T @ u)
    plan = u[:, None] * kernel * v
    moved = numpy.clip(numpy.rint(plan / plan.sum(1, keepdims=True) @ to_points), 0, 999).astype(
        int
    )
    return (
        [moved[:, 0].min(), moved[:, 1].min(), moved[:, 0].max(), moved[:, 1].max()]
        if predicted[0] == "bbox_2d"
        else moved.flatten().tolist()
    )


class PythonStep:
    def __init__(self, num_samples, threads):
        import torch
        from transformers import PreTrainedTokenizerFast, Qwen3VLForConditionalGeneration

        self.torch = torch
        torch.set_num_threads(threads)
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(MODEL)
        self.model = Qwen3VLForConditionalGeneration.from_pretrained(
            MODEL, dtype=torch.float32, attn_implementation="sdpa"
        )
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-9, betas=(0.9, 0.95), weight_decay=0.01, fused=True
        )
        self.stop_ids = set(self.model.generation_config.eos_token_id)
        self.end_id = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        coords = self.tokenizer.convert_tokens_to_ids([f"<|coord_{k}|>" for k in range(1000)])
        self.coord_ids, self.bin_of = (
            torch.tensor(coords),
            {token: k for k, token in enumerate(coords)},
        )
        bins = torch.arange(1000.0)
        self.soft_targets = torch.softmax(-0.5 * ((bins[None] - bins[:, None]) / SIGMA) ** 2, dim=1)
        self.samples = [
            self.load(json.loads(line)) for line in DATA.read_text().splitlines()[:num_samples]
        ]

    def load(self, record):
        import numpy
        from PIL import Image

        pixels = (
            numpy.asarray(
                Image.open(DATA.parent / record["images"][0]).convert("RGB"), dtype=numpy.float32
            )
            / 255
            - 0.5
        ) / 0.5
        rows, columns = pixels.shape[0] // 16, pixels.shape[1] // 16
        blocks = numpy.stack([pixels.transpose(2, 0, 1)] * 2).reshape(
            2, 3, rows // 2, 2, 16, columns // 2, 2, 16
        )
        patches = blocks.transpose(2, 5, 3, 6, 1, 0, 4, 7).reshape(rows * columns, -1)
        objects = []
        for item in record["objects"]:
            kind = "poly" if "poly" in item else "bbox_2d"
            flat = [v for point in item[kind] for v in point] if kind == "poly" else item[kind]
            objects.append((item["desc"], kind, flat))
        objects.sort(key=lambda item: (min(item[2][1::2]), min(item[2][::2])))
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": USER}]},
        ]
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        text = text.replace("<|image_pad|>", "<|image_pad|>" * (rows * columns // 4))
        return {
            "patches": self.torch.from_numpy(patches.copy()),
            "grid": [1, rows, columns],
            "objects": objects,
            "prompt": self.tokenizer(text, add_special_tokens=False)["input_ids"],
        }

    def inputs(self, token_ids, mask):
        return dict(
            input_ids=token_ids,
            attention_mask=mask,
            mm_token_type_ids=(token_ids == self.model.config.image_token_id).int(),
            pixel_values=self.torch.cat([sample["patches"] for sample in self.samples]),
            image_grid_thw=self.torch.tensor([sample["grid"] for sample in self.samples]),
        )

    def rollout(self):
        torch, width = self.torch, max(len(sample["prompt"]) for sample in self.samples)
        rows = torch.tensor(
            [
                [self.end_id] * (width - len(sample["prompt"])) + sample["prompt"]
                for sample in self.samples
            ]
        )
        mask = torch.tensor(
            [
                [0] * (width - len(sample["prompt"])) + [1] * len(sample["prompt"])
                for sample in self.samples
            ]
        )
        self.model.eval()
        out = self.model.generate(
            **self.inputs(rows, mask), max_new_tokens=MAX_NEW_TOKENS, do_sample=False
        )[:, width:].tolist()
        return [
            ids[: next((i for i, token in enumerate(ids) if token in self.stop_ids), len(ids))]
            for ids in out
        ]

    def parse(self, ids):
        """Objects of the complete entries, each with the positions of its coord tokens; the prefix
        that ends with the last of them.
        """
        pieces = [self.tokenizer.decode([token]) for token in ids]
        text, ends, total = "".join(pieces), [], 0
        for piece in pieces:
            total += len(piece)
            ends.append(total)
        decoder, objects, at, cut, last = (
            json.JSONDecoder(),
            [],
            text.find("{") + 1,
            text.find("{") + 1,
            0,
        )
        while entry := re.compile(r'\s*,?\s*"([^"]*)"\s*:\s*').match(text, at):
            try:
                value, at = decoder.raw_decode(text, entry.end())
            except ValueError:
                break
            inside = [
                i
                for i, token in enumerate(ids)
                if entry.end() < ends[i] <= at and token in self.bin_of
            ]
            kind = next(
                (k for k in ("bbox_2d", "poly") if isinstance(value, dict) and k in value), None
            )
            if kind and len(inside) >= 4 and len(inside) % 2 == 0:
                objects.append(
                    {
                        "kind": kind,
                        "bins": [self.bin_of[ids[i]] for i in inside],
                        "positions": inside,
                    }
                )
            name = re.fullmatch(r"object_(\d+)", entry.group(1))
            last, cut = max(last, int(name.group(1)) if name else 0), at
        return (
            objects,
            ids[: next((i + 1 for i, end in enumerate(ends) if end >= cut), 0)],
            last,
            text[:cut].endswith("{"),
        )

    def match(self, predicted, wanted):
        import numpy
        from pycocotools import mask as coco
        from scipy.optimize import linear_sum_assignment

        if not predicted or not wanted:
            return []
        canvas = lambda kind, bins: coco.frPyObjects(
            [[v * 256 / 1000.0 for point in points_of(kind, bins) for v in point]], 256, 256
        )[0]
        masks_p = [canvas(p["kind"], p["bins"]) for p in predicted]
        masks_g = [canvas(kind, bins) for _, kind, bins in wanted]
        num_p, num_g = len(predicted), len(wanted)
        cost = numpy.full((num_p + num_g, num_p + num_g), 1e6)
        cost[:num_p, num_g:] = cost[num_p:, :num_g] = 1.0
        cost[num_p:, num_g:] = 0.0
        for i, p in enumerate(predicted):
            box = box_of(p["kind"], p["bins"])
            nearest = sorted(
                range(num_g), key=lambda j: (-box_iou(box, box_of(*wanted[j][1:])), j)
            )[:10]
            for j in nearest:
                iou = float(coco.iou([masks_p[i]], [masks_g[j]], [0])[0][0])
                if iou >= 0.3:
                    cost[i, j] = 1 - iou
        return [
            (i, j)
            for i, j in zip(*linear_sum_assignment(cost))
            if i < num_p and j < num_g and cost[i, j] < 5e5
        ]

    def segment(self, sample, objects, prefix, last, is_open, pairs):
        """Token ids, the label of each (or -100) and (position, bin) of the coord slots."""
        first = len(sample["prompt"])
        slots = []
        for i, j in pairs:
            target = sample["objects"][j]
            both_boxes = objects[i]["kind"] == target[1] == "bbox_2d"
            bins = (
                target[2]
                if both_boxes
                else transported((objects[i]["kind"], objects[i]["bins"]), target[1:])
            )
            slots += [
                (first + position, bin) for position, bin in zip(objects[i]["positions"], bins)
            ]
        missing = [
            item for j, item in enumerate(sample["objects"]) if j not in {j for _, j in pairs}
        ]
        parts = []
        for n, (desc, kind, bins) in enumerate(missing, last + 1):
            coords = [f"<|coord_{v}|>" for v in bins]
            value = (
                coords
                if kind == "bbox_2d"
                else [coords[i : i + 2] for i in range(0, len(coords), 2)]
            )
            parts.append(
                f'"object_{n}": ' + json.dumps({"desc": desc, kind: value}, ensure_ascii=False)
            )
        text = ("" if is_open or not parts else ", ") + ", ".join(parts) + "}"
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        descs = [match.span(1) for match in re.finditer(r'"desc": "((?:[^"\\]|\\.)*)"', text)]
        token_ids, labels = sample["prompt"] + prefix, [-100] * (first + len(prefix))
        for token, (begin, end) in zip(encoded["input_ids"], encoded["offset_mapping"]):
            if token in self.bin_of:
                slots.append((len(token_ids), self.bin_of[token]))
            is_free = token in self.bin_of or any(begin < to and end > frm for frm, to in descs)
            labels.append(-100 if is_free else token)
            token_ids.append(token)
        return token_ids + [self.end_id], labels + [self.end_id], slots

    def loss(self, segments):
        torch, width = self.torch, max(len(token_ids) for token_ids, _, _ in segments)
        fill = lambda values, filler: torch.tensor(
            [row + [filler] * (width - len(row)) for row in values]
        )
        token_ids, labels = (
            fill([s[0] for s in segments], self.end_id),
            fill([s[1] for s in segments], -100),
        )
        mask = fill([[1] * len(s[0]) for s in segments], 0)
        self.model.train()
        logits = self.model(**self.inputs(token_ids, mask), use_cache=False).logits[:, :-1].float()
        ce = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100
        )
        rows = torch.tensor([row for row, s in enumerate(segments) for _ in s[2]])
        before = torch.tensor([position - 1 for s in segments for position, _ in s[2]])
        bins = torch.tensor([int(bin) for s in segments for _, bin in s[2]])
        at_slots = logits[rows, before].clamp(-1e4, 1e4)
        coord = at_slots[:, self.coord_ids]
        log_p, q = torch.log_softmax(coord, 1), self.soft_targets[bins]
        soft_ce = -(q * log_p).sum(1)
        w1 = (log_p.exp().cumsum(1) - q.cumsum(1)).abs().sum(1) / 1000
        gate = (torch.logsumexp(at_slots, 1) - torch.logsumexp(coord, 1)).clamp(min=0)
        return ce + (soft_ce + w1 + gate).mean()

    def run(self):
        clock, split = [time.perf_counter()], {}

        def lap(name):
            clock.append(time.perf_counter())
            split[name] = clock[-1] - clock[-2]

        answers = self.rollout()
        lap("rollout")
        parsed = [self.parse(ids) for ids in answers]
        pairs = [
            self.match(objects, sample["objects"])
            for (objects, *_), sample in zip(parsed, self.samples)
        ]
        lap("parse, match")
        segments = [
            self.segment(sample, *one, found)
            for sample, one, found in zip(self.samples, parsed, pairs)
        ]
        lap("encode, pack")
        loss = self.loss(segments)
        lap("forward")
        loss.backward()
        lap("backward")
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        lap("optimizer")
        return {
            "step_s": clock[-1] - clock[0],
            "loss": loss.item(),
            "new_tokens": sum(map(len, answers)),
            **split,
        }


# The program's steps, and the comparison.


def program_steps(binary, backend, options, directory, more=()):
    """The steps of one run, the first left out, and the most memory the process had, in MiB."""
    # What the Python side builds: the prefix with the missing objects appended, the truth in the
    # order of its positions.
    overrides = {
        "custom.object_ordering": "sorted",
        f"{ROLLOUT}.target_policy": "append",
        "training.output_dir": directory,
        "training.run_name": backend,
        "training.max_steps": options.steps + 1,
        "training.learning_rate": 1e-9,
        "training.logging_steps": 1,
        "training.save_strategy": "no",
        "training.save_last_epoch": "false",
        "training.report_to": "none",
        "training.eval_strategy": "no",
        "training.eval_on_start": "false",
        "custom.train_sample_limit": options.samples,
        "training.per_device_train_batch_size": options.samples,
        "training.effective_batch_size": options.samples,
        "training.num_train_epochs": options.steps + 1,
        f"{ROLLOUT}.rollout_backend": backend,
        f"{ROLLOUT}.rollout_generate_batch_size": options.samples,
        **dict(more),
    }
    command = [binary, "train", CONFIG]
    for key, value in overrides.items():
        command += ["--set", f"{key}={value}"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=log
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            sys.exit(log.read()[-3000:])
    path = pathlib.Path(directory) / backend / "logging.jsonl"
    logged = [
        line for line in map(json.loads, path.read_text().splitlines()) if "time/step_s" in line
    ][1:]
    path.unlink()
    return [
        {
            "step_s": line["time/step_s"],
            "loss": line["loss"],
            "new_tokens": line["rollout/gen_new_tokens_total"],
            **{name: sum(line.get(key, 0) for key in keys) for name, keys in PHASES.items()},
        }
        for line in logged
    ], usage.ru_maxrss / 1024


def typical(steps):
    return {key: statistics.median(step[key] for step in steps) for key in steps[0]}


def serve(options):
    side = PythonStep(options.samples, options.threads)
    for _ in sys.stdin:
        print("\n" + json.dumps([side.run() for _ in range(options.steps + 1)][1:]), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--python-side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python_side:
        return serve(options)
    if not DATA.exists():
        sys.exit(
            "demo/out/crowded is missing: run scripts/demo once, from the checkout's directory"
        )
    sizes = [
        "--steps",
        str(options.steps),
        "--samples",
        str(options.samples),
        "--threads",
        str(options.threads),
    ]
    environment = dict(
        os.environ,
        OMP_NUM_THREADS=str(options.threads),
        MKL_NUM_THREADS=str(options.threads),
        HF_HUB_OFFLINE="1",
        OMP_WAIT_POLICY="passive",
    )
    python = subprocess.Popen(
        [sys.executable, __file__, "--python-side"] + sizes,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )

    def python_steps():
        python.stdin.write("go\n")
        python.stdin.flush()
        for line in python.stdout:
            if line.startswith("["):
                return json.loads(line)
        sys.exit(f"the Python side ended with {python.wait()}")

    turns, peaks = (
        {"native": [], "hf": [], "hf, as configured": [], "Python": []},
        {"native": [], "hf": [], "training alone": []},
    )
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(options.rounds):
            for backend in ("native", "hf"):
                steps, peak_mib = program_steps(options.binary, backend, options, directory)
                turns[backend].append(typical(steps))
                peaks[backend].append(peak_mib)
            # hf above takes all prompts at once, its fastest setting; the demonstration's
            # configuration leaves its batch size at the default.
            steps, _ = program_steps(
                options.binary,
                "hf",
                options,
                directory,
                {f"{ROLLOUT}.rollout_generate_batch_size": 1}.items(),
            )
            turns["hf, as configured"].append(typical(steps))
            turns["Python"].append(typical(python_steps()))
        # The same steps with rollouts one by one in the smallest cache: what is left is training.
        _, peak_mib = program_steps(
            options.binary,
            "native",
            options,
            directory,
            {f"{ROLLOUT}.native.max_num_seqs": 1}.items(),
        )
        peaks["training alone"].append(peak_mib)
    python.stdin.close()
    python.wait()
    sides = {name: typical(steps) for name, steps in turns.items()}
    other = sides["Python"]
    print(
        f"{options.samples} images per window, {other['new_tokens']:.0f} new tokens, "
        f"{options.threads} threads\n"
    )
    print(
        f"| side | s per step | faster by | {' | '.join(PHASES)} | rollout faster by | loss |\n"
        f"|---|---|---|{'---|' * (len(PHASES) + 2)}"
    )
    for name, one in sides.items():
        split = " | ".join(f"{one[phase]:.3f}" for phase in PHASES)
        ratios = other["step_s"] / one["step_s"], other["rollout"] / one["rollout"]
        print(
            f"| {name} | {one['step_s']:.3f} | {ratios[0]:.2f} | {split} | {ratios[1]:.2f} | "
            f"{one['loss']:.5f} |"
        )
    native = sides["native"]["rollout"]
    print(
        f"\nrollout: native is {sides['hf, as configured']['rollout'] / native:.1f} times as fast "
        "as hf in the demonstration's configuration (one prompt "
        f"at a time), {sides['hf']['rollout'] / native:.2f} times as fast as hf with all prompts "
        "in one batch"
    )
    memory = {name: statistics.median(one) for name, one in peaks.items()}
    print(
        "peak memory: "
        + ", ".join(
            f"{name} {mib:.0f} MiB ({mib / memory['training alone']:.2f} times)"
            for name, mib in memory.items()
        )
    )
    if options.json:
        report = {"sides": sides, "peak_mib": memory, "turns": turns, "threads": options.threads}
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    worst = max(abs(one["loss"] / other["loss"] - 1) for one in sides.values())
    if worst > 1e-3:
        sys.exit(f"the losses differ by {worst:.1e}: these numbers compare different work")


if __name__ == "__main__":
    main()
