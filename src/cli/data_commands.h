#pragma once
#include <string>
#include <vector>

#include "cli/command_set.h"
#include "import/foreign.h"

namespace rematch {

/// Writes the records of a foreign data set and prints what became of it. @return the exit code
int write_imported(const ForeignSet& set, const std::string& out_dir, const ImportOptions& options);

/// `rematch data` from-qwen, to-qwen, boxes and split.
std::vector<Command> add_stock_data_commands(CLI::App& data);

}  // namespace rematch
