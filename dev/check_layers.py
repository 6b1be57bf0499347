#!/usr/bin/env python3
"""Checks the rules that a compiler cannot check: which folder may include which, how long a file and a function may be, what a header may pull in.

usage: check_layers.py [SRC_DIR]     exit 0 when every rule holds; prints each breach as path:line: reason
"""
import pathlib
import re
import sys

# The ONE table of edges: folder -> folders it may include (itself, base and settings are always allowed).
ALLOWED = {
    "base": set(),
    "settings": set(),
    "flow": set(),
    "model/families": {"flow", "checkpoint"},
    "config": {"model/families", "estep/answer", "estep/match", "estep/target", "observe", "rollout/backend"},  # the tables its choices come from
    "data": {"flow", "vision"},
    "text": {"flow", "model/families"},
    "vision": {"flow"},
    "augment": {"flow", "vision"},
    "draw": {"flow", "vision"},
    "import": {"flow", "vision", "draw"},
    "records": {"flow", "data", "vision", "import"},
    "review": {"flow", "data", "vision", "estep/match"},
    "report": {"flow", "vision", "draw", "evaluate"},
    "observe": set(),
    "estep/parse": {"flow", "text"},
    "estep/answer": {"flow", "text", "model/families", "estep/parse"},
    "estep/match": {"flow"},
    "estep/target": {"flow", "text", "estep/answer"},
    "pack": {"flow"},
    "nn": set(),
    "checkpoint": set(),
    "kernels": set(),
    "ranks": set(),
    "model": {"flow", "nn", "checkpoint", "vision", "model/families"},
    "rollout/backend": set(),
    "rollout": {"ranks", "flow", "text", "vision", "kernels", "nn", "model", "model/families", "rollout/backend"},
    "mstep/loss": {"flow", "nn"},
    "mstep/optim": {"model/families"},
    "mstep": {"ranks", "flow", "vision", "model", "mstep/loss", "mstep/optim"},
    "estep": {"flow", "augment", "data", "text", "vision", "estep/answer", "estep/match", "estep/target", "rollout"},
    "monitor": {"flow", "augment", "text", "vision", "draw", "observe", "estep", "estep/answer", "estep/match", "estep/target"},
    "evaluate": {"ranks", "flow", "observe", "data", "estep", "estep/match", "mstep", "mstep/loss"},
    "resume": {"flow", "data", "estep/target", "pack", "checkpoint", "model"},
    "train": {"ranks", "flow", "augment", "data", "vision", "checkpoint", "observe", "pack", "model", "estep", "estep/target", "rollout", "mstep", "evaluate", "resume"},
    "stages": {"flow", "text", "vision", "pack", "estep/answer", "estep/match", "estep/target"},
    "plan": {"vision", "checkpoint", "model", "model/families", "mstep/loss", "rollout"},
    "assembly": None,  # everything below it
    "cli": None,
    "python": {"flow", "observe", "estep/match", "evaluate", "stages"},
}
READS_ALL_SETTINGS = ("config", "assembly", "cli")
NEVER_FROM_BELOW = {"assembly": {"cli", "python", "stages"}, "cli": {"python"}}
MAX_LINES = 400
MAX_FUNCTION_LINES = 60
FAMILIES = "model/families"  # the only folder that knows what a model is called
STOCK_FORMATS = ("estep/answer/qwen_json.cc", "estep/answer/CMakeLists.txt")  # formats that a family gave its name
STOCK_COMMANDS = re.compile(r"(?:from|to)-qwen")  # commands for a data format that bears a family's name
STOCK_HELP = "cli/cmd_data_stock.cc"  # says which checkpoints answer in which unit
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def folder_of(path):
    parts = pathlib.PurePosixPath(path).parts[:-1]
    joined = "/".join(parts[:2])
    return joined if joined in ALLOWED else parts[0] if parts else ""


def named_families(src):
    """Breaches of: a family is named in its own folder only, whatever the letter case; its name is the folder's without the version."""
    names = {re.match("[a-z]+", folder.name).group() for folder in (src / FAMILIES).glob("*/")}
    for path in sorted(src.rglob("*")):
        if not path.is_file() or path.is_relative_to(src / FAMILIES) or path.relative_to(src).as_posix().startswith(STOCK_FORMATS):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for name in names if path.relative_to(src).as_posix() != STOCK_HELP else ():
                if name in STOCK_COMMANDS.sub("", line.lower()):
                    yield path.relative_to(src).as_posix(), number, f"names the model family {name}; what belongs to one lives in {FAMILIES}/"


def long_functions(lines):
    """(line, length) of functions over the limit, a table in one counting as a line. clang-format makes this simple: a definition ends with
    the first brace that is not indented deeper than its first line."""
    for indent in ("", "  ", "    "):
        start, table, saved = None, None, 0
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if line.startswith(indent + "  ") or text.startswith(("#", "//")) or not text:
                if table is None and text.endswith(("return {", "= {")):
                    table = number, line[:len(line) - len(line.lstrip())] + "}"
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
            yield name, len(lines), f"{len(lines)} lines; a file has one idea and at most {MAX_LINES}"
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
            if target == "settings/settings.h" and here not in (*READS_ALL_SETTINGS, "settings"):
                yield name, number, f"the settings as a whole are for {', '.join(READS_ALL_SETTINGS)}; a part takes its own struct of settings/"
            if there in (here, "base", "settings"):
                continue
            if there == "config" and here not in ("assembly", "cli"):
                yield name, number, "configuration is read by assembly/ and cli/ only; parts take structs of settings/"
            allowed = ALLOWED.get(here, set())
            if allowed is None:
                if there in NEVER_FROM_BELOW[here]:
                    yield name, number, f"{here} may not include {there}"
            elif there not in allowed:
                yield name, number, f"{here} may not include {there} (allowed: {', '.join(sorted(allowed)) or 'base only'})"


def main():
    src = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "src"
    found = list(breaches(src))
    for name, number, reason in found:
        print(f"{src.name}/{name}:{number}: {reason}")
    print(f"{len(found)} breaches of the layer rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
