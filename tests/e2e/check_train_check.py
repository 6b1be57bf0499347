#!/usr/bin/env python3
"""`check` accepts what `train` accepts: both run on a table of odd settings, checkpoints and
records, and must agree. One step each, on the tiny golden model.

usage: check_train_check.py REMATCH [--every N]

--every N: each N-th row of the tables only, and the rows that have disagreed (CI); without it all.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check_train_rows import CONFIG, FOUND, MODEL, SCENES, cases


def outcome(rematch, case):
    """Exit codes of check and train, and the first line of the one that refused."""
    _, variant, settings, edit, records = case
    with tempfile.TemporaryDirectory(prefix="check_train_") as directory:
        place = Path(directory)
        shutil.copytree(MODEL, place / "model", copy_function=shutil.copyfile)
        if edit:
            edit(place / "model")
        config = CONFIG.format(variant=variant, scenes=SCENES)
        if records is not None:
            (place / "records.jsonl").write_text(records)
            (place / "images").symlink_to(SCENES / "images")
            config = config.replace(f"{SCENES}/train.jsonl", "records.jsonl")
        (place / "run.yaml").write_text(config)
        arguments = ["run.yaml", *(part for one in settings for part in ("--set", one))]
        codes, first = [], ""
        for command in ("check", "train"):
            done = subprocess.run(
                [rematch, command, *arguments],
                cwd=place,
                capture_output=True,
                text=True,
                errors="replace",
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                timeout=280,
            )
            codes.append(done.returncode)
            said = [one for one in done.stderr.splitlines() if one.startswith("error:")]
            first = first or (said[0] if said else "")
    return codes, first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rematch")
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    rows = [(*row, None) for row in FOUND] + list(cases())[:: arguments.every]
    rematch = os.path.abspath(arguments.rematch)
    num_accepted, failed = 0, []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (codes, first) in zip(rows, pool.map(lambda one: outcome(rematch, one), rows)):
            check, train = codes
            num_accepted += train == 0
            if (check == 0) != (train == 0) or max(codes) > 4 or min(codes) < 0:
                failed.append(f"{case[0]}: check {check}, train {train}: {first}")
    print(f"{len(rows)} rows: train accepts {num_accepted}, check disagrees on {len(failed)}")
    print("\n".join(failed))
    return 1 if failed or not 0 < num_accepted < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
