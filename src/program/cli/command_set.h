#pragma once
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/strings.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace rematch {

struct StageRow;

/// A subcommand and the function that runs it. Its arguments live in `run`.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< @return exit code; @throws UserError
  /// keeps running after its output pipe closes; other commands end with their reader
  bool writes_files = false;
};

// One function for each command, in the file of its name with its options and examples.
Command add_train_command(CLI::App& app);
Command add_eval_command(CLI::App& app);
Command add_check_command(CLI::App& app);
Command add_plan_command(CLI::App& app);
Command add_rollout_command(CLI::App& app);
Command add_probe_command(CLI::App& app);
Command add_coord_tokens_command(CLI::App& app);
Command add_merge_command(CLI::App& app);
Command add_doctor_command(CLI::App& app);
Command add_explain_command(CLI::App& app);
Command add_init_command(CLI::App& app);
Command add_predict_command(CLI::App& app);
Command add_compare_command(CLI::App& app);
Command add_report_command(CLI::App& app);

/// `PROGRAM stage NAME` for each stage of a table.
/// @param stages  outlives the commands
std::vector<Command> add_stage_commands(CLI::App& app, const std::vector<StageRow>& stages);

/// `rematch data …`: data in, and what is odd about them.
std::vector<Command> add_data_commands(CLI::App& app);

/// Ends a command's help with a block of examples.
/// @param arguments  what follows the names of program and command
/// @param before  text above the block
void add_examples(CLI::App& command, const Strings& arguments, const std::string& before = "");

/// A subcommand with its summary and examples.
CLI::App& add_subcommand(CLI::App& parent, const char* name, const char* summary,
                         const Strings& examples);

/// A command, and what its options are added to.
template <typename Arguments>
struct NewCommand {
  Command command;
  CLI::App& app;
  Arguments& arguments;  ///< filled by its options; live in `command`
};

/// @param run       called with the arguments.
/// @param examples  as of add_examples()
template <typename Given>
auto make_command(CLI::App& parent, const char* name, const char* summary, int (*run)(Given),
                  const Strings& examples, bool writes_files = false) {
  using Arguments = std::remove_cvref_t<Given>;
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& app = add_subcommand(parent, name, summary, examples);
  return NewCommand<Arguments>{
      {&app, [run, arguments] { return run(*arguments); }, writes_files}, app, *arguments};
}

/// All commands of the program.
std::vector<Command> add_commands(CLI::App& app);

}  // namespace rematch
