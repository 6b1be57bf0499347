#!/usr/bin/env python3
"""Checks the rules that a compiler cannot check: which folder may include which, how long a file
and a function may be, what a header may pull in.

usage: check_layers.py [SRC_DIR]     exit 0 when every rule holds; prints each breach as path:line:
reason
"""

import pathlib
import re
import sys

# The wings of src/, bottom-up: a wing may include itself and the wings before it.
WINGS = ("base", "model", "engine", "learn", "tools", "program")

# Inside and between them: folder -> folders it may include (itself, base and base/settings are
# always allowed). What knows no tensors builds alone.
ALLOWED = {
    "base": set(),
    "base/settings": set(),
    "base/flow": set(),
    "model/families": {"base/flow", "model/checkpoint"},
    "program/config": {
        "model/families",
        "learn/estep/answer",
        "learn/estep/match",
        "learn/estep/teach",
        "base/observe",
        "engine/rollout/backend",
        "learn/resume",
    },  # the tables its choices come from; the checkpoint of a run
    "learn/data": {"base/flow", "model/vision"},
    "model/text": {"base/flow", "model/families"},
    "model/vision": {"base/flow"},
    "learn/augment": {"base/flow", "model/vision", "learn/data"},
    "tools/draw": {"base/flow", "model/vision"},
    "tools/import": {"base/flow", "model/vision", "learn/data"},
    "tools/records": {"base/flow", "learn/data", "model/vision", "tools/import"},
    "tools/review": {
        "base/flow",
        "learn/data",
        "model/vision",
        "learn/estep/match",
        "tools/import",
    },
    "tools/report": {"base/flow", "model/vision", "tools/draw", "learn/evaluate"},
    "base/observe": set(),
    "learn/estep/parse": {"base/flow", "model/text"},
    "learn/estep/answer": {"base/flow", "model/text", "model/families", "learn/estep/parse"},
    "learn/estep/match": {"base/flow"},
    "learn/estep/teach": {"base/flow", "model/text", "learn/estep/answer"},
    "learn/pack": {"base/flow"},
    "model/nn": {"model/kernels"},
    "model/checkpoint": set(),
    "model/kernels": set(),
    "engine/ranks": {"model/nn"},
    "model": {"base/flow", "model/nn", "model/checkpoint", "model/vision", "model/families"},
    "engine/rollout/backend": set(),
    "engine/rollout": {
        "engine/ranks",
        "base/flow",
        "model/text",
        "model/vision",
        "model/kernels",
        "model/nn",
        "model",
        "model/families",
        "engine/rollout/backend",
        "engine/rollout/native",
    },
    "engine/rollout/native": {
        "base/flow",
        "model/text",
        "model",
        "engine/rollout",
        "engine/rollout/native/aten",
        "engine/rollout/native/cpu",
    },
    "engine/rollout/native/aten": {
        "base/flow",
        "model",
        "model/families",
        "model/nn",
        "engine/rollout",
        "engine/rollout/native",
    },
    "engine/rollout/native/cpu": {
        "base/flow",
        "model",
        "model/families",
        "model/kernels",
        "model/nn",
        "engine/rollout",
        "engine/rollout/native",
    },
    "learn/mstep/loss": {"base/flow", "model/nn"},
    "learn/mstep/optim": {"model/families", "model/nn", "model/checkpoint"},
    "learn/mstep": {
        "engine/ranks",
        "base/flow",
        "model/vision",
        "model",
        "learn/mstep/loss",
        "learn/mstep/optim",
    },
    "learn/estep": {
        "base/flow",
        "learn/augment",
        "learn/data",
        "model/text",
        "model/vision",
        "learn/estep/answer",
        "learn/estep/match",
        "learn/estep/teach",
        "engine/rollout",
    },
    "tools/monitor": {
        "base/flow",
        "learn/augment",
        "model/text",
        "model/vision",
        "tools/draw",
        "base/observe",
        "learn/estep",
        "learn/estep/answer",
        "learn/estep/match",
        "learn/estep/teach",
    },
    "learn/evaluate": {
        "engine/ranks",
        "base/flow",
        "base/observe",
        "learn/data",
        "learn/estep",
        "learn/estep/answer",
        "learn/estep/match",
        "learn/mstep",
        "learn/mstep/loss",
    },
    "learn/resume": {
        "base/flow",
        "learn/data",
        "learn/estep/teach",
        "learn/pack",
        "model/checkpoint",
        "model",
    },
    "learn/train": {
        "engine/ranks",
        "base/flow",
        "learn/augment",
        "learn/data",
        "model/vision",
        "model/checkpoint",
        "base/observe",
        "learn/pack",
        "model",
        "learn/estep",
        "learn/estep/teach",
        "engine/rollout",
        "learn/mstep",
        "learn/evaluate",
        "learn/resume",
    },
    "tools/stages": {
        "base/flow",
        "model/text",
        "model/vision",
        "learn/pack",
        "learn/estep/answer",
        "learn/estep/match",
        "learn/estep/teach",
    },
    "tools/plan": {
        "model/vision",
        "model/checkpoint",
        "model/nn",
        "model",
        "model/families",
        "learn/mstep/loss",
        "engine/rollout",
        "engine/rollout/native",
        "engine/rollout/native/cpu",
    },
    "program/assembly": None,  # everything below it
    "program/cli": None,
    "tools/python": {
        "base/flow",
        "base/observe",
        "learn/estep/match",
        "learn/evaluate",
        "tools/stages",
    },
}
READS_ALL_SETTINGS = ("program/config", "program/assembly", "program/cli")
NEVER_FROM_BELOW = {
    "program/assembly": {"program/cli", "tools/import", "tools/python", "tools/stages"},
    "program/cli": {"tools/python"},
}
MAX_LINES = 400
MAX_FUNCTION_LINES = 60
FAMILIES = "model/families"  # the only folder that knows what a model is called
STOCK_FORMATS = (
    "learn/estep/answer/qwen_json.cc",
    "learn/estep/answer/CMakeLists.txt",
)  # formats that a family gave its name
STOCK_COMMANDS = re.compile(
    r"(?:from|to)-qwen"
)  # commands for a data format that bears a family's name
STOCK_HELP = (
    "program/cli/stock_arguments.h",
    "program/cli/stock_arguments.cc",
)  # says which checkpoints answer in which unit
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def folder_of(path):
    """The innermost folder of the table that holds a file."""
    parts = pathlib.PurePosixPath(path).parts[:-1]
    return next(
        (name for n in range(len(parts), 0, -1) if (name := "/".join(parts[:n])) in ALLOWED),
        parts[0] if parts else "",
    )


def named_families(src):
    """Breaches of: a family is named in its own folder only, whatever the letter case; its name is
    the folder's without the version.
    """
    names = {re.match("[a-z]+", folder.name).group() for folder in (src / FAMILIES).glob("*/")}
    for path in sorted(src.rglob("*")):
        if (
            not path.is_file()
            or path.is_relative_to(src / FAMILIES)
            or path.relative_to(src).as_posix().startswith(STOCK_FORMATS)
        ):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for name in names if path.relative_to(src).as_posix() not in STOCK_HELP else ():
                if name in STOCK_COMMANDS.sub("", line.lower()):
                    yield (
                        path.relative_to(src).as_posix(),
                        number,
                        f"names the model family {name}; what belongs to one lives in {FAMILIES}/",
                    )


def long_functions(lines):
    """(line, length) of functions over the limit, a table in one counting as a line. clang-format
    makes this simple: a definition ends with
    the first brace that is not indented deeper than its first line."""
    for indent in ("", "  ", "    "):
        start, table, saved = None, None, 0
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if line.startswith(indent + "  ") or text.startswith(("#", "//")) or not text:
                if table is None and text.endswith(("return {", "= {")):
                    table = number, line[: len(line) - len(line.lstrip())] + "}"
                elif table and line.startswith(table[1]):
                    saved, table = saved + number - table[0], None
            elif line.startswith(indent + "}"):
                length = number - start + 1 - saved if start else 0
                if length > MAX_FUNCTION_LINES and "(" in lines[start - 1]:
                    yield start, length
                start = None
            else:
                start, table, saved = number, None, 0


def breaches(src):
    yield from named_families(src)
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(src).as_posix()
        here = folder_of(name)
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            yield (
                name,
                len(lines),
                f"{len(lines)} lines; a file has one idea and at most {MAX_LINES}",
            )
        for number, length in long_functions(lines):
            yield name, number, f"a function of {length} lines; {MAX_FUNCTION_LINES} at most"
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            if target == "torch/torch.h":
                yield name, number, "torch/torch.h takes 20 s a file; include what is used"
            if target == "nlohmann/json.hpp" and name.endswith(".h"):
                yield name, number, "nlohmann/json.hpp is slow to compile; headers use base/json.h"
            if not (src / target).exists():
                continue
            there = folder_of(target)
            if target == "base/settings/settings.h" and here not in (
                *READS_ALL_SETTINGS,
                "base/settings",
            ):
                yield (
                    name,
                    number,
                    f"the settings as a whole are for {', '.join(READS_ALL_SETTINGS)}; a part "
                    "takes its own struct of settings/",
                )
            if WINGS.index(target.split("/")[0]) > WINGS.index(name.split("/")[0]):
                yield (
                    name,
                    number,
                    f"the wing {name.split('/')[0]} may not include the wing "
                    f"{target.split('/')[0]}",
                )
            if there in (here, "base", "base/settings"):
                continue
            if there == "program/config" and here not in ("program/assembly", "program/cli"):
                yield (
                    name,
                    number,
                    "configuration is read by assembly/ and cli/ only; parts take structs of "
                    "settings/",
                )
            allowed = ALLOWED.get(here, set())
            if allowed is None:
                if there in NEVER_FROM_BELOW[here]:
                    yield name, number, f"{here} may not include {there}"
            elif there not in allowed:
                yield (
                    name,
                    number,
                    f"{here} may not include {there} (allowed: "
                    f"{', '.join(sorted(allowed)) or 'base only'})",
                )


def main():
    src = (
        pathlib.Path(sys.argv[1])
        if len(sys.argv) > 1
        else pathlib.Path(__file__).resolve().parent.parent / "src"
    )
    found = list(breaches(src))
    for name, number, reason in found:
        print(f"{src.name}/{name}:{number}: {reason}")
    print(f"{len(found)} breaches of the layer rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
