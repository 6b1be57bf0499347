// `rematch merge ADAPTER_DIR --out DIR [--model BASE] [--dtype DTYPE]`
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "engine/ranks/ranks.h"
#include "learn/data/order_score.h"
#include "learn/evaluate/score_calibration.h"
#include "learn/resume/find_model.h"
#include "model/checkpoint/hf_dir.h"
#include "model/merge_adapter.h"
#include "model/text/stored_prompt.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/standard_output.h"

namespace rematch {
namespace {

/// Says when the scores were measured with other weights than are merged.
bool keeps_scores(const MergeOptions& options, Terminal& terminal) {
  const auto scores = ScoreCalibration::read(options.adapter_dir);
  if (scores && scores->fits(options.adapter_dir) && !options.force_base) return true;
  terminal.warn(fmt::format(
      "{} is left out: it was measured with other weights, and `predict` then has no score; "
      "`rematch eval {}` before merging measures it again",
      join_path(options.adapter_dir, kScoreCalibrationFile), shell_word(options.adapter_dir)));
  return false;
}

int run_merge(MergeOptions options) {
  require_alone("rematch merge");
  const NamedModel adapter = find_model(options.adapter_dir);
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  if (!adapter.note.empty()) terminal->say(adapter.note);
  options.adapter_dir = adapter.path;
  const MergedAdapter merged = merge_adapter(options);
  for (const char* name : {kStoredPromptFile, kOrderFile, kScoreCalibrationFile}) {
    const std::string own = join_path(options.adapter_dir, name);
    if (!path_exists(own)) continue;
    if (name == kScoreCalibrationFile && !keeps_scores(options, *terminal)) continue;
    write_output(join_path(options.output_dir, name), {own}, read_file(own));
  }
  const std::string& note = merged.base_note;
  if (!note.empty()) options.force_base ? terminal->warn(note) : terminal->say("note: " + note);
  if (const std::string text = spare_weights_warning(merged.base_dir); !text.empty())
    terminal->warn(text);
  print("merged {} layers of {} + {} into {}", merged.num_layers, merged.base_dir,
        options.adapter_dir, options.output_dir);
  if (merged.num_replaced > 0)
    print("; {} parameters replaced by the adapter's own", merged.num_replaced);
  if (merged.num_rows > 0) print("; the rows of {} tokens replaced", merged.num_rows);
  std::cout << "\n";
  if (merged.num_dequantised > 0) {
    print(
        "{} Linear layers of the base {} in 4 bits: {} has the dequantised values, as in "
        "training\n",
        merged.num_dequantised,
        merged.packed_at_load ? "were packed by `model.load_in_4bit`, so the adapter met them"
                              : "are",
        options.output_dir);
  }
  if (merged.untied)
    std::cout << "the adapter trains embedding and head apart: they are tied no longer\n";
  return 0;
}

}  // namespace

Command add_merge_command(CLI::App& app) {
  const auto [command, merge, options] = make_command(
      app, "merge",
      "merge a LoRA or DoRA adapter into its base model; write a full Hugging Face directory",
      run_merge,
      {"output/lora/checkpoint-200 --out merged",
       "adapter --model base --out merged --dtype bfloat16"},
      /*writes_files=*/true);
  merge
      .add_option("ADAPTER_DIR", options.adapter_dir,
                  "PEFT directory, or a run with tuner.train_type: lora (its best checkpoint)")
      ->required();
  merge.add_option("--out", options.output_dir, "directory to create")->required();
  merge.add_option("--model", options.base_dir,
                   "base model; default: the one named by the adapter");
  merge
      .add_option_function<std::string>(
          "--dtype",
          [&options = options](const std::string& name) {
            options.dtype = name == "bfloat16" ? at::kBFloat16 : at::kFloat;
          },
          "float32 or bfloat16; default: the dtype of the base model's weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  merge.add_flag("--force-base", options.force_base, kForceBaseHelp);
  return command;
}

}  // namespace rematch
