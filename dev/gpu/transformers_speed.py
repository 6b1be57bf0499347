"""Tokens per second of transformers' generate, greedy: transformers_speed.py MODEL BATCH SHORT LONG
DEVICE < PROMPTS

PROMPTS is a line of JSON, the token ids of one prompt; the batch is that prompt BATCH times. The
rate is that of the tokens between SHORT and
LONG new ones, so that start-up and prompt cost nothing. Exit 77 where transformers is not
installed.
"""

import json
import sys
import time


def main():
    try:
        import torch
        from transformers import Qwen3VLForConditionalGeneration
    except ImportError as error:
        print(error, file=sys.stderr)
        return 77
    model_dir, batch, device = sys.argv[1], int(sys.argv[2]), sys.argv[5]
    lengths = [int(value) for value in sys.argv[3:5]]
    ids = torch.tensor([json.loads(sys.stdin.read())] * batch, device=device)
    model = (
        Qwen3VLForConditionalGeneration.from_pretrained(
            model_dir, dtype=torch.bfloat16, attn_implementation="sdpa"
        )
        .to(device)
        .eval()
    )

    def seconds(length):
        begin = time.perf_counter()
        with torch.no_grad():
            out = model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=length,
                min_new_tokens=length,
            )
        assert out.shape[1] == ids.shape[1] + length
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    seconds(lengths[0])
    short, long = (seconds(length) for length in lengths)
    print(json.dumps({"tokens_per_s": batch * (lengths[1] - lengths[0]) / (long - short)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
