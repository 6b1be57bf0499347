#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
class Validator;
}  // namespace CLI

namespace rematch {

struct StageRow;

/// A subcommand and what runs when it was given. Its arguments live in `run`.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< @return exit code; @throws UserError
  /// keeps running after its output pipe closes; other commands end with their reader
  bool writes_files = false;
};

/// Accepts the numbers of a range, which CLI::Range does too, but no NaN. @param unit  for messages
CLI::Validator finite_range(double least, double most, const std::string& unit = "");

/// Commands that take a configuration or a model: `rematch train`, `eval`, `check`, `plan`,
/// `rollout`, `probe`, `add-coord-tokens`, `merge`, `doctor`.
std::vector<Command> add_run_commands(CLI::App& app);

/// `PROGRAM stage NAME` for each stage of a table. @param stages  outlives the command
Command add_stage_command(CLI::App& app, const std::vector<StageRow>& stages);

/// `rematch data from-coco|from-voc|from-yolo|from-labelme|from-swift|check|show`: data in, and
/// what is odd about them.
std::vector<Command> add_data_commands(CLI::App& app);

/// `rematch predict MODEL IMAGE|DIR …`.
std::vector<Command> add_predict_command(CLI::App& app);

/// `rematch compare RUN …` and `rematch report RUN …`.
std::vector<Command> add_report_commands(CLI::App& app);

/// `rematch init MODEL JSONL`.
std::vector<Command> add_init_command(CLI::App& app);

/// `rematch explain KEY`, `rematch schema`, `rematch completions SHELL`. @param app  outlives the
/// commands
std::vector<Command> add_explain_commands(CLI::App& app);

/// All commands of the program, with their examples.
std::vector<Command> add_commands(CLI::App& app);

}  // namespace rematch
