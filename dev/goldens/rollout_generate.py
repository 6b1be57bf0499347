"""Greedy answers of transformers' generate for a random tiny Qwen3-VL checkpoint whose answers do
not go in circles.

rollout_generate.py golden            rewrites tests/golden/rollout_model and
tests/golden/rollout_generate.json
rollout_generate.py live OUT [SEED]   writes another checkpoint to OUT/model and its answers to
OUT/generate.json (for the live test)

The answers file: prompts (token ids with expanded image pads, grids), the number of new tokens and,
by repetition penalty, the generated
ids of each prompt, decoded alone and without a stop token, and their log-probabilities under the
raw logits (`logprobs`). Those without penalty are also decoded as one left-padded batch and must be
the
same (with a penalty transformers penalises the padding too). Pixels are not stored: row i, column k
of image number m (counted over all
prompts) is
(((i + 1000·m)·7919 + k·104729 + ((i + 1000·m)·k) % 251) % 256 − 127.5) / 127.5.
"""

import json
import pathlib
import shutil
import sys

import torch
from transformers import AutoModelForImageTextToText

from model_tiny import IDS, ROOT, build, configuration, write_companions

NEW_TOKENS = 128
WIDTH = 3 * 2 * 16 * 16


def save_checkpoint(directory, seed):
    shutil.rmtree(directory, ignore_errors=True)
    model = build(configuration(tie_word_embeddings=False), seed, torch.float32)
    with (
        torch.no_grad()
    ):  # strong attention and layers make the next token depend on more than the last one
        for name, parameter in model.named_parameters():
            if "language_model" in name and (
                "o_proj" in name or "down_proj" in name or "q_norm" in name or "k_norm" in name
            ):
                parameter.mul_(1.5)
    model.to(torch.bfloat16).save_pretrained(directory)
    write_companions(directory)
    for path in directory.iterdir():
        path.chmod(0o644)


def prompts():
    """Eight of different lengths: text, one image of either size, both."""
    words = lambda start, count: [
        5 + (start * 37 + 11 * i * (start % 3 + 1)) % 340 for i in range(count)
    ]
    image = lambda h, w: (
        [IDS["vision_start"]] + [IDS["image_pad"]] * (h * w // 4) + [IDS["vision_end"]]
    )
    small, large = [1, 4, 6], [1, 8, 4]
    return [
        (words(1, 5) + image(4, 6) + words(2, 7), [small]),
        (words(3, 19), []),
        (words(4, 3) + image(8, 4) + words(5, 4), [large]),
        (words(6, 1), []),
        (words(7, 2) + image(4, 6) + words(8, 3) + image(8, 4) + words(9, 11), [small, large]),
        (words(10, 8), []),
        (image(4, 6) + words(11, 2), [small]),
        (words(12, 30) + image(8, 4) + words(13, 1), [large]),
    ]


def pixels(number, num_rows):
    i = torch.arange(num_rows)[:, None] + 1000 * number
    k = torch.arange(WIDTH)[None, :]
    return (((i * 7919 + k * 104729 + (i * k) % 251) % 256).float() - 127.5) / 127.5


def generate(model, chosen, images, penalty):
    """Answers of several prompts as one left-padded batch, the log-probabilities of their tokens,
    and the smallest gap between the two best
    scores over the largest."""
    longest = max(len(ids) for ids, _ in chosen)
    rows = torch.tensor([[IDS["endoftext"]] * (longest - len(ids)) + ids for ids, _ in chosen])
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids, _ in chosen])
    inputs = dict(
        input_ids=rows,
        attention_mask=mask,
        mm_token_type_ids=((rows == IDS["image_pad"]) & (mask == 1)).int(),
    )
    grids = [grid for _, grids in chosen for grid in grids]
    if grids:
        inputs.update(image_grid_thw=torch.tensor(grids), pixel_values=torch.cat(images))
    out = model.generate(
        **inputs,
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        repetition_penalty=penalty,
        pad_token_id=IDS["endoftext"],
        output_scores=True,
        output_logits=True,
        return_dict_in_generate=True,
    )
    gap = 1.0
    for scores in out.scores:
        best = scores.topk(2).values
        gap = min(gap, ((best[:, 0] - best[:, 1]) / scores.abs().amax(1)).min().item())
    ids = out.sequences[:, longest:]
    logprobs = torch.stack(out.logits, 1).float().log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    return ids.tolist(), logprobs.tolist(), gap


def answers(directory, path, min_gap):
    model = AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    all_prompts, images, number = prompts(), [], 0
    for _, grids in all_prompts:
        images.append([pixels(number + i, t * h * w) for i, (t, h, w) in enumerate(grids)])
        number += len(grids)
    greedy, logprobs = {}, {}
    for penalty in (1.0, 1.3):
        alone = [
            generate(model, [prompt], images[i], penalty) for i, prompt in enumerate(all_prompts)
        ]
        greedy[f"{penalty}"] = [ids[0] for ids, _, _ in alone]
        logprobs[f"{penalty}"] = [[round(value, 7) for value in row[0]] for _, row, _ in alone]
        gap = min(gap for _, _, gap in alone)
        print(
            f"penalty {penalty}: {[len(set(ids[0])) for ids, _, _ in alone]} different ids, "
            f"smallest gap {gap:.2e}"
        )
        assert gap > min_gap, "another seed: two logits nearly tie"
    batch, _, _ = generate(model, all_prompts, [image for row in images for image in row], 1.0)
    assert batch == greedy["1.0"], "transformers' own batch differs from one by one"
    stored = [dict(token_ids=ids, grids=grids) for ids, grids in all_prompts]
    path.write_text(
        json.dumps(dict(prompts=stored, new_tokens=NEW_TOKENS, greedy=greedy, logprobs=logprobs))
        + "\n"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["golden"]:
        save_checkpoint(ROOT / "tests/golden/rollout_model", 102)
        answers(
            ROOT / "tests/golden/rollout_model", ROOT / "tests/golden/rollout_generate.json", 1.5e-5
        )
    elif len(sys.argv) >= 3 and sys.argv[1] == "live":
        out = pathlib.Path(sys.argv[2])
        save_checkpoint(out / "model", int(sys.argv[3]) if len(sys.argv) > 3 else 7)
        answers(out / "model", out / "generate.json", 0)
    else:
        sys.exit(__doc__)
