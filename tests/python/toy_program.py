#!/usr/bin/env python3
"""Stands in for the program: writes what it got into calls.jsonl, and plays the command.

usage: toy_program.py COMMAND …      the last argument of `train` names what happens:
                                     steps.yaml, endless.yaml, refused.yaml
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

RUN = Path("out/r\tun\u202e")
LOG = RUN / "logging.jsonl"
EVALUATION = {"eval_rollout_f1_iou50": 0.5, "eval_set": "a"}


def note(**values):
    with open("calls.jsonl", "a") as file:
        file.write(json.dumps(values) + "\n")


def say(text):
    print(text, file=sys.stderr, flush=True)


def send_event(name, path):
    if os.environ.get("REMATCH_EVENTS") == "1":
        say(json.dumps({"event": name, "path": os.fspath(path)}))


def log(row, torn=False):
    text = json.dumps(row) + "\n"
    with open(LOG, "a") as file:
        file.write(text[:9] if torn else text)
        file.flush()
        time.sleep(0.5 if torn else 0)
        file.write(text[9:] if torn else "")


def end(number, _):
    note(signal=number)
    time.sleep(1)
    note(saved=True)
    say(
        f"saved {RUN}/checkpoint-3\ncontinue with: rematch train endless.yaml --resume\ninterrupted"
    )
    sys.exit(130)


def train(config):
    if config == "refused.yaml":
        say("warning: odd\nerror: a\n  where: b\n  what:  c\n  fix:   d")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    RUN.mkdir(parents=True, exist_ok=True)
    LOG.touch()
    if config == "endless_again.yaml":
        say(f"{RUN} holds a run, which stays as it is (…)")
    say("warning: odd\n  and odder\nmodel     toy")
    say("where     logs and checkpoints in an escaped text")
    send_event("run", RUN)
    time.sleep(0.5)
    log({"step": 1, "loss": 4.0}, torn=True)
    log({"step": 1, **EVALUATION})
    while config.startswith("endless"):
        time.sleep(0.1)
    log({"step": 2, "loss": None})
    (RUN / "checkpoint-2").mkdir(exist_ok=True)
    for name in ("best", "last"):
        (RUN / name).symlink_to("checkpoint-2")
    return 0


def main():
    command, *arguments = sys.argv[1:]
    note(command=command, arguments=arguments, libraries=os.environ.get("LD_LIBRARY_PATH", ""))
    if command == "train":
        return train(arguments[-1])
    if command == "eval":
        Path("eval_results.json").write_text(json.dumps(EVALUATION))
        print("F1 @ IoU 0.5  <.500>")
        say("wrote an escaped text\nwrote out/eval/model.json and files next to it")
        send_event("scores", "eval_results.json")
    if command == "probe":
        verdict = {"action": "stop", "headline": "stop"}
        print(json.dumps({"measured": {"f1_iou50": 0.97, "missing": None}, "verdict": verdict}))
    if command in ("init", "report", "merge"):
        out = next(one.partition("=")[2] for one in arguments if one.startswith("--out="))
        Path(out).write_text(f"<p>{command}</p>")
        print(f"wrote {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
