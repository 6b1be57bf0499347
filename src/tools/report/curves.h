#pragma once
#include <vector>

#include "base/json.h"
#include "tools/report/run_data.h"

namespace rematch {

/// The curves of the runs' logs: {"names": name of each run, null without a log, "charts":
/// [{"title", "log": true for a logarithmic axis, "runs": [{"lines": [[[x, y], …], …], "dots":
/// [[[x, y], …], …]}, …]}, …]}, with one chart for each metric of any run. Lines are training
/// steps, dots evaluations. The dots of one list are over the same set, without a restart between
/// them, and may be connected.
Json collect_curves(const std::vector<RunData>& runs);

}  // namespace rematch
