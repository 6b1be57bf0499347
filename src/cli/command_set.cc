#include "cli/command_set.h"

#include <CLI/CLI.hpp>

#include "cli/completions.h"

namespace rematch {

std::vector<Command> add_commands(CLI::App& app) {
  std::vector<Command> all;
  for (const auto add : {add_run_commands, add_stage_command, add_data_commands, add_init_command,
                         add_predict_command, add_report_commands, add_explain_commands}) {
    for (Command& command : add(app)) all.push_back(std::move(command));
  }
  add_examples(app);
  return all;
}

}  // namespace rematch
