#pragma once
#include <string>
#include <vector>

#include "cli/command_set.h"
#include "import/foreign.h"

namespace rematch {

/// The verb for a file that was written: it says when an earlier file is gone.
inline const char* written_verb(bool replaces_earlier) {
  return replaces_earlier ? "replaced" : "wrote";
}

/// Writes the records of a foreign data set and prints what became of it. @return the exit code
int write_imported(const ForeignSet& set, const std::string& out_dir, const ImportOptions& options);

/// `rematch data` from-qwen, to-qwen, boxes and split.
std::vector<Command> add_stock_data_commands(CLI::App& data);

}  // namespace rematch
