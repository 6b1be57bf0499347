#pragma once
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace rematch {

/// A shell's completion script for all commands and options of the program.
/// @param shell  "bash", "zsh" or "fish".
/// @param keys  of configurations, after `--set` and `explain`
std::string completions_for(const std::string& shell, const CLI::App& app,
                            const std::vector<std::string>& keys);

}  // namespace rematch
