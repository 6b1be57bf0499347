#pragma once
#include <vector>

#include "report/run_data.h"

namespace rematch {

/// Moves evaluations of a run's checkpoints, given as runs without a log, into that run, to get one
/// column instead of two with nearly the same scores. The evaluation replaces the last one of the
/// log, and takes scores that only the log has (`eval_loss`). The merged run comes first if one of
/// its parts was first, otherwise at the place of its last part.
std::vector<RunData> merge_runs(std::vector<RunData> runs);

}  // namespace rematch
