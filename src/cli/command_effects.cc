#include "cli/command_effects.h"

#include <fmt/core.h>

namespace rematch {

const std::vector<CommandEffects>& command_effects() {
  static const std::vector<CommandEffects> kRows = {
      {.command = "train",
       .reads = "data, images, model, the checkpoint to resume from",
       .writes = "the run directory: `checkpoint-N/`, links `best` and `last`, `logging.jsonl`, "
                 "`args.json`, "
                 "`effective_config.txt`, TensorBoard's events, pictures of rollouts",
       .replaces =
           "an earlier run moves to `abandoned-N/` at the first save, and so does a "
           "directory in the way of a checkpoint; a run with its model in its own directory is "
           "refused",
       .memory = "`rematch plan`"},
      {.command = "eval",
       .reads = "`custom.val_jsonl`, images, model",
       .writes = "`eval_results.json` and `eval/NAME.*` in the run directory",
       .replaces =
           "`eval_results.json` of the last call; `eval/NAME.*` of the same checkpoint, with "
           "a warning when model or data differ",
       .memory = "the model, and the answers to all samples"},
      {.command = "check",
       .reads = "data, headers of images, headers of the model",
       .writes = "",
       .replaces = "",
       .memory = "the records; a model claims at most 1024 layers"},
      {.command = "plan",
       .reads = "`config.json` of the model",
       .writes = "",
       .replaces = "",
       .memory = "a model claims at most 1024 layers"},
      {.command = "rollout",
       .reads = "`custom.val_jsonl` or `train_jsonl`, images, model",
       .writes = "`--out`, or `rollouts.jsonl` in the run directory",
       .replaces = "the same file, once all lines are there",
       .memory = "the model, and the answers to all samples"},
      {.command = "probe",
       .reads = "`custom.val_jsonl`, images, model",
       .writes = "",
       .replaces = "",
       .memory = "the model, and `--samples` answers to each sample"},
      {.command = "add-coord-tokens",
       .reads = "a model",
       .writes = "the directory OUT, complete or not at all",
       .replaces = "a directory that is not empty is refused",
       .memory = "a shard of the weights"},
      {.command = "merge",
       .reads = "an adapter and its base model",
       .writes = "the directory `--out`, complete or not at all",
       .replaces = "a directory that is not empty is refused",
       .memory = "the adapter, and a shard of the weights"},
      {.command = "doctor",
       .reads = "the Python of `vllm.python`, which it starts",
       .writes = "",
       .replaces = "",
       .memory = "nothing of a model"},
      {.command = "stage",
       .reads = "JSON lines of standard input, a tokenizer",
       .writes = "",
       .replaces = "",
       .memory = "`--batch-size` lines"},
      {.command = "data from-coco",
       .reads = "annotations, headers of images (`--upright`: rotated images, one at a time)",
       .writes = "SPLIT.jsonl in `--out`; turned copies in its `upright/SPLIT/`",
       .replaces = "files of these names, once all splits could be read",
       .memory = "all annotations"},
      {.command = "data from-voc",
       .reads = "annotations, headers of images (`--upright`: rotated images, one at a time)",
       .writes = "SPLIT.jsonl in `--out`; turned copies in its `upright/SPLIT/`",
       .replaces = "files of these names, once all splits could be read",
       .memory = "all annotations"},
      {.command = "data from-yolo",
       .reads = "annotations, headers of images (`--upright`: rotated images, one at a time)",
       .writes = "SPLIT.jsonl in `--out`; turned copies in its `upright/SPLIT/`",
       .replaces = "files of these names, once all splits could be read",
       .memory = "all annotations"},
      {.command = "data from-swift",
       .reads = "annotations, headers of images (`--upright`: rotated images, one at a time)",
       .writes = "SPLIT.jsonl in `--out`; turned copies in its `upright/SPLIT/`",
       .replaces = "files of these names, once all splits could be read",
       .memory = "all annotations"},
      {.command = "data from-labelme",
       .reads = "annotations, headers of images (`--upright`: rotated images, one at a time)",
       .writes = "SPLIT.jsonl in `--out`; turned copies in its `upright/SPLIT/`",
       .replaces = "files of these names, once all splits could be read",
       .memory = "all annotations"},
      {.command = "data from-qwen",
       .reads = "annotations, headers of images (`--upright`: rotated images, one at a time)",
       .writes = "SPLIT.jsonl in `--out`; turned copies in its `upright/SPLIT/`",
       .replaces = "files of these names, once all splits could be read",
       .memory = "all annotations"},
      {.command = "data to-qwen",
       .reads = "a JSONL, a model's image processor (`--model`)",
       .writes = "`--out`",
       .replaces = "the same file; never one that is read",
       .memory = "all records"},
      {.command = "data boxes",
       .reads = "a JSONL",
       .writes = "`--out`",
       .replaces = "the same file; never one that is read",
       .memory = "all records"},
      {.command = "data split",
       .reads = "a JSONL, the bytes of its images",
       .writes = "NAME-train.jsonl and NAME-val.jsonl next to it, or in `--out`",
       .replaces = "the same file; never one that is read",
       .memory = "all records, one image at a time"},
      {.command = "data check",
       .reads = "a JSONL, headers of images (`--decode`: one image at a time)",
       .writes = "`--fix`",
       .replaces = "the same file",
       .memory = "all records"},
      {.command = "data show",
       .reads = "a JSONL, images, a configuration (`--augment`)",
       .writes = "the PNG `--out`",
       .replaces = "the same file; never one that is read",
       .memory = "`--count` panels of `--size` pixels"},
      {.command = "init",
       .reads = "data, tokenizer and processor of the model",
       .writes = "the YAML `--out`",
       .replaces = "a file that exists is refused",
       .memory = "all records"},
      {.command = "predict",
       .reads = "images, a model, an adapter",
       .writes = "`--out`, pictures in `--draw`",
       .replaces = "the same file, once all answers are there; pictures of an earlier call; a "
                   "directory `--draw` that holds an input is refused",
       .memory = "the model, 16 images, and the answers to all images"},
      {.command = "compare",
       .reads = "`logging.jsonl`, `args.json` and `eval/*.json` of runs",
       .writes = "`--out`",
       .replaces = "the same file",
       .memory = "these files"},
      {.command = "report",
       .reads = "the same, samples of the evaluations, their images",
       .writes = "`--out`, `--sheet`",
       .replaces = "the same files",
       .memory = "these files, 3 MiB of shown images"},
      {.command = "explain", .reads = "", .writes = "", .replaces = "", .memory = "nothing"},
      {.command = "schema", .reads = "", .writes = "", .replaces = "", .memory = "nothing"},
      {.command = "completions", .reads = "", .writes = "", .replaces = "", .memory = "nothing"},
  };
  return kRows;
}

std::string command_effects_markdown() {
  const auto cell = [](const std::string& text) { return text.empty() ? "–" : text; };
  std::string table =
      "| command | reads | writes | what was there before | memory is bounded by |\n"
      "|---|---|---|---|---|\n";
  for (const CommandEffects& row : command_effects()) {
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.command, cell(row.reads),
                         cell(row.writes), cell(row.replaces), cell(row.memory));
  }
  return table;
}

}  // namespace rematch
