#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "learn/estep/answer/answer_format.h"
#include "program/cli/command_set.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

/// Adds the options that the stage takes.
void add_stage_options(CLI::App& app, const StageRow& row, StageOptions& options) {
  const auto takes = [&row](const char* option) { return contains(row.options, option); };
  if (takes("model"))
    app.add_option("--model", options.model_dir,
                   "Hugging Face directory (text stages need only its tokenizer.json)")
        ->required();
  if (takes("answer-format"))
    app.add_option("--answer-format", options.answer_format,
                   fmt::format("how answers are written: {}; without it that of --model",
                               join(answer_formats().names(), ", ")));
  if (takes("out"))
    app.add_option("--out", options.output_dir, "directory for safetensors files")->required();
  if (takes("backend"))
    app.add_option("--backend", options.backend, "rollout backend")->capture_default_str();
  if (takes("dtype"))
    app.add_option("--dtype", options.dtype, "float32 or bfloat16")->capture_default_str();
  if (takes("device")) app.add_option("--device", options.device, "auto, cpu, cuda or cuda:N");
  if (takes("batch-size"))
    app.add_option("--batch-size", options.batch_size, "input lines generated together")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
}

/// An id of the input names its file, which could be `model`.
void refuse_model_directory(const StageOptions& options) {
  std::error_code absent;
  if (options.output_dir.empty() ||
      !std::filesystem::equivalent(options.output_dir, options.model_dir, absent))
    return;
  throw config_error({.error = "the output would replace files of the model",
                      .where = "--out " + options.output_dir,
                      .what = "it is the directory of --model",
                      .fix = "choose another directory"});
}

Command add_stage(CLI::App& command, const StageRow& row) {
  CLI::App* app = command.add_subcommand(row.name, row.summary);
  app->footer("");
  const auto options = std::make_shared<StageOptions>();
  add_stage_options(*app, row, *options);
  return {app, [options, &row] {
            refuse_model_directory(*options);
            const std::unique_ptr<Stage> stage = row.make(*options);
            return run_stage(*stage, options->batch_size, std::cin, std::cout);
          }};
}

}  // namespace

std::vector<Command> add_stage_commands(CLI::App& app, const std::vector<StageRow>& stages) {
  CLI::App* command =
      app.add_subcommand("stage", "run one stage of the loop on JSON lines (stdin → stdout)");
  command->require_subcommand(1);
  add_examples(*command, {"match < scenes.jsonl", "parse --model base < answers.jsonl"});
  std::vector<Command> commands;
  for (const StageRow& row : stages) commands.push_back(add_stage(*command, row));
  return commands;
}

}  // namespace rematch
