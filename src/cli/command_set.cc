#include "cli/command_set.h"

#include <CLI/CLI.hpp>

#include "cli/completions.h"
#include "stages/stage_table.h"

namespace rematch {

std::vector<Command> add_commands(CLI::App& app) {
  std::vector<Command> all = add_run_commands(app);
  all.push_back(add_stage_command(app, public_stages()));
  for (const auto add : {add_data_commands, add_init_command, add_predict_command,
                         add_report_commands, add_explain_commands}) {
    for (Command& command : add(app)) all.push_back(std::move(command));
  }
  add_examples(app);
  return all;
}

}  // namespace rematch
