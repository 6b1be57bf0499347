#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program/cli/command_set.h"

namespace rematch {

/// The verb for a file that was written: it says when an earlier file is gone.
inline const char* written_verb(bool replaces_earlier) {
  return replaces_earlier ? "replaced" : "wrote";
}

/// Prints the most frequent classes with their counts.
void print_classes(const std::map<std::string, int64_t>& classes);

/// `rematch data` from-….
std::vector<Command> add_import_commands(CLI::App& data);

/// `rematch data` to-qwen, boxes and split.
std::vector<Command> add_stock_data_commands(CLI::App& data);

Command add_data_check(CLI::App& data);
Command add_data_show(CLI::App& data);

}  // namespace rematch
