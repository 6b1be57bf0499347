#pragma once
#include <vector>

#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "tools/report/report.h"

namespace rematch {

/// The files that were read of runs, so that a command does not replace them.
InputFiles run_files(const std::vector<RunData>& runs);
/// Prints the warnings of runs, and names those that the scores of the others leave out.
void print_warnings(const std::vector<RunData>& runs, Terminal& terminal);

}  // namespace rematch
