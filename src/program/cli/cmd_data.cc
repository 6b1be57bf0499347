// `rematch data …`: from other programs' annotations to a JSONL, and a look at it.
#include <CLI/CLI.hpp>

#include "program/cli/command_set.h"
#include "program/cli/data_commands.h"

namespace rematch {

std::vector<Command> add_data_commands(CLI::App& app) {
  CLI::App* data = app.add_subcommand(
      "data", "import annotations of other programs; check and show a JSONL (docs/data.md)");
  data->require_subcommand(1);
  add_examples(*data, {"from-coco instances_train.json --images photos --out data",
                       "check data/train.jsonl"});
  std::vector<Command> commands = add_import_commands(*data);
  for (Command& command : add_stock_data_commands(*data)) commands.push_back(std::move(command));
  commands.push_back(add_data_check(*data));
  commands.push_back(add_data_show(*data));
  return commands;
}

}  // namespace rematch
