"""Sends the log of a run to wandb as it grows. The program contains this text and starts it with
python3.

arguments: none                       exits with 0 if wandb is installed, else with 3
           RUN_DIR OFFSET RUN_NAME    follows RUN_DIR/logging.jsonl from a byte offset; the log is
                                      complete when standard input ends
"""

import sys

# Import nothing from the current directory: wandb leaves a folder `wandb` there, which is not the
# package.
sys.path = [folder for folder in sys.path if folder]
import importlib.util
import json
import os
import select
import uuid


def is_installed():
    spec = importlib.util.find_spec("wandb")
    return spec is not None and spec.origin is not None


def start_run(directory, name):
    """A resumed run continues under its id."""
    import wandb

    id_path = os.path.join(directory, "wandb_id")
    if not os.path.exists(id_path):
        with open(id_path, "w") as file:
            file.write(uuid.uuid4().hex[:8])
    with open(id_path) as file:
        run_id = file.read().strip()
    with open(os.path.join(directory, "args.json")) as file:
        config = json.load(file)
    return wandb.init(dir=directory, name=name or None, id=run_id, resume="allow", config=config)


def follow(directory, offset, name):
    run = start_run(directory, name)
    position, rest, is_complete = 0, b"", False
    while True:
        with open(os.path.join(directory, "logging.jsonl"), "rb") as log:
            log.seek(offset + position)
            text = log.read()
        position += len(text)
        *lines, rest = (rest + text).split(b"\n")
        for line in lines:
            values = {key: value for key, value in json.loads(line).items() if value is not None}
            run.log(values, step=values.pop("step"))
        if is_complete and not lines:
            break
        is_complete = is_complete or bool(select.select([0], [], [], 1.0)[0])
    run.finish()


if len(sys.argv) == 1:
    sys.exit(0 if is_installed() else 3)
follow(sys.argv[1], int(sys.argv[2]), sys.argv[3])
