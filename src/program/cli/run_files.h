#pragma once
#include <vector>

#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "tools/report/report.h"

namespace rematch {

/// The files that were read of runs, so that a command does not replace them.
InputFiles run_files(const std::vector<RunData>& runs);
/// Prints the warnings of runs.
void print_warnings(const std::vector<RunData>& runs, Terminal& terminal);
/// Names the runs that the scores leave out.
void warn_of_missing_scores(const std::vector<RunData>& runs, Terminal& terminal);

}  // namespace rematch
