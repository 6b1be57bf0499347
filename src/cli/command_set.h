#pragma once
#include <functional>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace rematch {

/// A subcommand and what runs when it was given. Its arguments live in `run`.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< @return exit code; @throws UserError
};

/// `rematch data from-coco|from-voc|from-yolo|from-swift|check|show`: data in, and what is odd about them.
std::vector<Command> add_data_commands(CLI::App& app);

/// `rematch predict MODEL IMAGE|DIR …`.
std::vector<Command> add_predict_command(CLI::App& app);

/// `rematch compare RUN …` and `rematch report RUN …`.
std::vector<Command> add_report_commands(CLI::App& app);

/// `rematch init MODEL JSONL`.
std::vector<Command> add_init_command(CLI::App& app);

/// `rematch explain KEY`, `rematch schema`, `rematch completions SHELL`. @param app  outlives the commands
std::vector<Command> add_explain_commands(CLI::App& app);

/// All commands that live in a Command; gives every command of the program its examples.
std::vector<Command> add_commands(CLI::App& app);

}  // namespace rematch
