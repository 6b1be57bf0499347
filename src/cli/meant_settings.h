#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rematch {

/// The arguments that a command does not know, in their order, values of unknown options included.
std::vector<std::string> unexpected_arguments(const CLI::App& command,
                                              const std::vector<std::string>& arguments);

/// The settings that unexpected arguments such as `--max_steps 3`, `--lr=1e-4` and `seed=1` mean:
/// "--set training.max_steps=3 …". Empty when they are no keys of ours, or the command takes no
/// `--set`.
std::string meant_settings(const CLI::App& command, const std::vector<std::string>& unexpected);

}  // namespace rematch
