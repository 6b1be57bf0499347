#pragma once
#include <vector>

#include "report/run_data.h"

namespace rematch {

/// Moves evaluations of a run's checkpoints, given as runs without a log, into that run: it then
/// has one column, in place of a second one with nearly the same scores. The evaluation replaces
/// the last one of the log and takes over its scores that it lacks (`eval_loss`). The merged run
/// stands first when one of its parts was first, else where its last part was.
std::vector<RunData> merge_runs(std::vector<RunData> runs);

}  // namespace rematch
