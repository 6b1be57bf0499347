#include "program/cli/command_set.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iterator>

#include "tools/stages/stage.h"

namespace rematch {

std::vector<Command> add_commands(CLI::App& app) {
  std::vector<Command> all{
      add_train_command(app),        add_eval_command(app),    add_check_command(app),
      add_plan_command(app),         add_rollout_command(app), add_probe_command(app),
      add_coord_tokens_command(app), add_merge_command(app),   add_doctor_command(app)};
  for (std::vector<Command>& inner :
       std::array{add_stage_commands(app, public_stages()), add_data_commands(app)})
    std::ranges::move(inner, std::back_inserter(all));
  for (const auto add : {add_init_command, add_predict_command, add_compare_command,
                         add_report_command, add_explain_command})
    all.push_back(add(app));
  return all;
}

}  // namespace rematch
