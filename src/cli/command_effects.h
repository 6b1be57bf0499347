#pragma once
#include <string>
#include <vector>

namespace rematch {

/// Inputs, outputs and memory of a command: a row of the table in docs/reliability.md.
struct CommandEffects {
  const char* command;   ///< as it is typed, e.g. "data check"
  const char* reads;     ///< besides the configuration that is its argument
  const char* writes;    ///< besides standard output; "" = nothing
  const char* replaces;  ///< what was there before, and what becomes of it
  const char* memory;    ///< what bounds the memory it takes
};

/// One row for every command.
const std::vector<CommandEffects>& command_effects();

/// The rows as a Markdown table.
std::string command_effects_markdown();

}  // namespace rematch
