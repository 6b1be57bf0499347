"""The Python side of bench/published.py: transformers and PEFT, a batch of answers and a row at a
time."""

import json
import pathlib
import statistics
import time

SYSTEM, USER = "You are a helpful assistant.", "Locate every object."
RANK, ALPHA, RATE = 8, 16, 1e-4
TEXT_LINEARS = (
    r".*language_model\.layers\.\d+\.(self_attn|linear_attn|mlp)\."
    r"([qkvo]_proj|in_proj_qkv|in_proj_z|out_proj|gate_proj|up_proj|down_proj)"
)


def answer_of(record):
    objects = sorted(record["objects"], key=lambda item: (item["bbox_2d"][1], item["bbox_2d"][0]))
    written = lambda bins: [int(value * 1000 / 999 + 0.5) for value in bins]  # BEHAVIOUR 19.3
    rows = ",\n".join(
        f'\t{{"bbox_2d": {json.dumps(written(item["bbox_2d"]))}, "label": "{item["desc"]}"}}'
        for item in objects
    )
    return f"```json\n[\n{rows}\n]\n```"


class PythonSide:
    def __init__(self, options):
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast

        torch.set_num_threads(options.threads)
        self.torch, self.dtype = torch, getattr(torch, options.dtype)
        self.num_answer_tokens = options.answers
        work = pathlib.Path(options.work)
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(work / "model/tokenizer.json"))
        self.template = (work / "model/chat_template.jinja").read_text()
        base = AutoModelForImageTextToText.from_pretrained(
            work / "model", dtype=self.dtype, attn_implementation="sdpa"
        )
        base.gradient_checkpointing_enable({"use_reentrant": False})
        base.enable_input_require_grads()
        settings = LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=options.dropout, target_modules=TEXT_LINEARS
        )
        self.model = get_peft_model(base, settings)
        self.model.train()
        trained = [tensor for tensor in self.model.parameters() if tensor.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=RATE)
        records = map(json.loads, (work / "train.jsonl").read_text().splitlines())
        self.rows = [self.encode(record, work) for record in records]

    def encode(self, record, work):
        import numpy
        from PIL import Image

        picture = Image.open(work / record["images"][0]).convert("RGB")
        pixels = (numpy.asarray(picture, dtype=numpy.float32) / 255 - 0.5) / 0.5
        rows, columns = pixels.shape[0] // 16, pixels.shape[1] // 16
        blocks = numpy.stack([pixels.transpose(2, 0, 1)] * 2).reshape(
            2, 3, rows // 2, 2, 16, columns // 2, 2, 16
        )
        patches = blocks.transpose(2, 5, 3, 6, 1, 0, 4, 7).reshape(rows * columns, -1)
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": USER}]},
        ]
        prompt = self.tokenizer.apply_chat_template(
            messages,
            chat_template=self.template,
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,
        ).replace("<|image_pad|>", "<|image_pad|>" * (rows * columns // 4))
        ids = lambda text: self.tokenizer(text, add_special_tokens=False)["input_ids"]
        first, taught = ids(prompt), ids(answer_of(record) + "<|im_end|>")
        tensor = self.torch.tensor
        token_ids = tensor([first + taught])
        self.prompt_len = len(first)  # the same of all rows
        return dict(
            input_ids=token_ids,
            attention_mask=self.torch.ones_like(token_ids),
            mm_token_type_ids=(token_ids == self.model.config.image_token_id).int(),
            labels=tensor([[-100] * len(first) + taught]),
            pixel_values=self.torch.from_numpy(patches.copy()).to(self.dtype),
            image_grid_thw=tensor([[1, rows, columns]]),
        )

    def autocast(self):
        return self.torch.autocast("cpu", self.dtype, self.dtype != self.torch.float32)

    def answer(self):
        """Greedy answers to all prompts, in one batch, each as long as --answers says."""
        together = lambda key: self.torch.cat([row[key] for row in self.rows])
        prompts = lambda key: self.torch.cat([row[key][:, : self.prompt_len] for row in self.rows])
        tokens = {key: prompts(key) for key in ("input_ids", "attention_mask", "mm_token_type_ids")}
        images = {key: together(key) for key in ("pixel_values", "image_grid_thw")}
        length = dict(max_new_tokens=self.num_answer_tokens, min_new_tokens=self.num_answer_tokens)
        self.model.eval()
        with self.torch.no_grad(), self.autocast():
            self.model.generate(**tokens, **images, **length, do_sample=False)
        self.model.train()

    def step(self):
        start, losses = time.perf_counter(), []
        if self.num_answer_tokens:
            self.answer()
        answered = time.perf_counter() - start
        for row in self.rows:
            with self.autocast():
                loss = self.model(**row, use_cache=False).loss
            (loss / len(self.rows)).backward()
            losses.append(loss.item())
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {
            "step_s": time.perf_counter() - start,
            "rollout_s": answered,
            "loss": statistics.mean(losses),
        }

    def num_tokens(self):
        return sum(row["input_ids"].shape[1] for row in self.rows)


def run_python_side(options):
    side = PythonSide(options)
    first, *steps = [side.step() for _ in range(options.steps + 1)]
    medians = {key: statistics.median(step[key] for step in steps) for key in first}
    # the loss before an update: adapters begin with other values
    print(json.dumps({**medians, "loss": first["loss"], "tokens": side.num_tokens()}))
