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

struct StageArguments {
  std::string name;
  StageOptions options;
};

bool takes_option(const StageRow& row, const std::string& option) {
  return std::find(row.options.begin(), row.options.end(), option) != row.options.end();
}

CLI::App* add_stage_arguments(CLI::App& app, StageArguments& arguments,
                              const std::vector<StageRow>& stages) {
  CLI::App* command =
      app.add_subcommand("stage", "run one stage of the loop on JSON lines (stdin → stdout)");
  std::string names = "stage to run:";
  for (const StageRow& row : stages) names += fmt::format("\n  {:9} {}", row.name, row.summary);
  command->add_option("NAME", arguments.name, names)->required();

  StageOptions& options = arguments.options;
  command->add_option("--model", options.model_dir,
                      "Hugging Face directory (text stages need only its tokenizer.json)");
  command->add_option("--answer-format", options.answer_format,
                      fmt::format("how answers are written: {}; without it that of --model",
                                  join(answer_formats().names(), ", ")));
  command->add_option("--out", options.output_dir, "directory for safetensors files");
  command->add_option("--backend", options.backend, "rollout backend of `generate`")
      ->capture_default_str();
  command->add_option("--dtype", options.dtype, "float32 or bfloat16")->capture_default_str();
  command->add_option("--device", options.device, "auto, cpu, cuda or cuda:N");
  command->add_option("--batch-size", options.batch_size, "input lines generated together")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  // Options that no stage of the table takes are hidden, but still parsed: the message for a
  // stage that is not here says more than that for an unknown option.
  for (CLI::Option* option : command->get_options()) {
    if (option->get_lnames().empty() || option == command->get_help_ptr()) continue;
    const auto takes = [&](const StageRow& row) {
      return takes_option(row, option->get_lnames().front());
    };
    if (std::none_of(stages.begin(), stages.end(), takes)) option->group("");
  }
  return command;
}

void check_options(const CLI::App& command, const StageRow& row, const std::string& where) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || option == command.get_help_ptr()) continue;
    const std::string& name = option->get_lnames().front();
    const bool takes = takes_option(row, name);
    if (option->count() > 0 && !takes) {
      throw UserError(ErrorKind::kConfig,
                      {.error = fmt::format("stage {} does not take --{}", row.name, name),
                       .where = where,
                       .what = fmt::format("its options: {}",
                                           row.options.empty() ? "none" : join(row.options, ", ")),
                       .fix = "remove the option"});
    }
    if (option->count() == 0 && takes && (name == "model" || name == "out")) {
      throw UserError(ErrorKind::kConfig,
                      {.error = fmt::format("stage {} needs --{}", row.name, name),
                       .where = where,
                       .what = "the option is missing",
                       .fix = fmt::format("add --{} DIR", name)});
    }
  }
}

/// An id of the input names its file, which could be `model`.
void refuse_model_directory(const StageOptions& options) {
  std::error_code absent;
  if (options.output_dir.empty() ||
      !std::filesystem::equivalent(options.output_dir, options.model_dir, absent))
    return;
  throw UserError(ErrorKind::kConfig, {.error = "the output would replace files of the model",
                                       .where = "--out " + options.output_dir,
                                       .what = "it is the directory of --model",
                                       .fix = "choose another directory"});
}

int run_stage_command(const CLI::App& command, const StageArguments& arguments,
                      const std::vector<StageRow>& stages) {
  const std::string program = command.get_parent()->get_name();
  const StageRow& row = find_stage(stages, arguments.name, program);
  check_options(command, row, fmt::format("{} stage {}", program, row.name));
  refuse_model_directory(arguments.options);
  const std::unique_ptr<Stage> stage = row.make(arguments.options);
  return run_stage(*stage, arguments.options.batch_size, std::cin, std::cout);
}

}  // namespace

Command add_stage_command(CLI::App& app, const std::vector<StageRow>& stages) {
  const auto arguments = std::make_shared<StageArguments>();
  CLI::App* command = add_stage_arguments(app, *arguments, stages);
  add_examples(*command, {"match < scenes.jsonl", "parse --model base < answers.jsonl"});
  return {command, [command, arguments, &stages] {
            return run_stage_command(*command, *arguments, stages);
          }};
}

}  // namespace rematch
