#pragma once
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace rematch {

/// A shell's completion script for all commands and options of the program. @param shell  "bash",
/// "zsh" or "fish". @param keys  of configurations, after `--set` and `explain`
std::string completions_for(const std::string& shell, const CLI::App& app,
                            const std::vector<std::string>& keys);

/// Sets two examples as the end of the help of each command that has none yet.
void add_examples(CLI::App& app);

/// The command that a mistyped one probably means, or "".
std::string meant_command(const CLI::App& app, const std::string& typed);

}  // namespace rematch
