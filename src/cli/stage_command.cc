#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "cli/command_set.h"
#include "cli/stage.h"
#include "cli/stage_table.h"

namespace rematch {
namespace {

struct StageArguments {
  std::string name;
  StageOptions options;
};

CLI::App* add_stage_arguments(CLI::App& app, StageArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("stage", "run one stage of the loop on JSON lines (stdin → stdout)");
  std::string names = "stage to run:";
  for (const StageRow& row : stage_table())
    names += fmt::format("\n  {:9} {}", row.name, row.summary);
  command->add_option("NAME", arguments.name, names)->required();
  command->add_option("--model", arguments.options.model_dir,
                      "Hugging Face directory (text stages need only its tokenizer.json)");
  command->add_option("--output", arguments.options.output_dir, "directory for safetensors files");
  command->add_option("--backend", arguments.options.backend, "rollout backend of `generate`")
      ->capture_default_str();
  command->add_option("--dtype", arguments.options.dtype, "float32 or bfloat16")
      ->capture_default_str();
  command->add_option("--device", arguments.options.device, "auto, cpu, cuda or cuda:N");
  command
      ->add_option("--batch-size", arguments.options.batch_size, "input lines generated together")
      ->capture_default_str();
  return command;
}

int run_stage_command(const CLI::App& command, const StageArguments& arguments) {
  const StageRow& row = find_stage(arguments.name);
  const auto takes = [&row](const std::string& name) {
    return std::find(row.options.begin(), row.options.end(), name) != row.options.end();
  };
  for (const char* name : {"model", "output", "backend", "dtype", "device", "batch-size"}) {
    const bool given = command.count(std::string("--") + name) > 0;
    const bool needed = std::string(name) == "model" || std::string(name) == "output";
    if (given && !takes(name)) {
      throw UserError(ErrorKind::kConfig,
                      {.error = fmt::format("stage {} does not take --{}", row.name, name),
                       .where = fmt::format("rematch stage {}", row.name),
                       .what = fmt::format("its options: {}",
                                           row.options.empty() ? "none" : join(row.options, ", ")),
                       .fix = "remove the option"});
    }
    if (needed && takes(name) && !given) {
      throw UserError(ErrorKind::kConfig,
                      {.error = fmt::format("stage {} needs --{}", row.name, name),
                       .where = fmt::format("rematch stage {}", row.name),
                       .what = "the option is missing",
                       .fix = fmt::format("add --{} DIR", name)});
    }
  }
  if (arguments.options.batch_size < 1) {
    throw UserError(ErrorKind::kConfig, {.error = "--batch-size must be at least 1",
                                         .where = "rematch stage --batch-size",
                                         .what = std::to_string(arguments.options.batch_size),
                                         .fix = "set it to 1 or more"});
  }
  const std::unique_ptr<Stage> stage = row.make(arguments.options);
  return run_stage(*stage, arguments.options.batch_size, std::cin, std::cout);
}

}  // namespace

std::vector<Command> add_stage_command(CLI::App& app) {
  const auto arguments = std::make_shared<StageArguments>();
  CLI::App* command = add_stage_arguments(app, *arguments);
  return {{command, [command, arguments] { return run_stage_command(*command, *arguments); }}};
}

}  // namespace rematch
