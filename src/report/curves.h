#pragma once
#include <vector>

#include "base/json.h"
#include "report/run_data.h"

namespace rematch {

/// The curves of the runs' logs: {"names": of each run with a log, else null, "charts": one for
/// each metric that any run has, {"title", "log": whether its axis is logarithmic, "runs": for each
/// run {"lines": [[[x, y], …], …], "dots": likewise}}}. Lines are training steps, dots evaluations;
/// a list of dots are evaluations over one set in one start of the run, which may be connected.
Json collect_curves(const std::vector<RunData>& runs);

/// Where the time of a mean step went, for each run that logs it: {"name", "step_s", "parts":
/// [[name, percent], …]}.
Json collect_times(const std::vector<RunData>& runs);

}  // namespace rematch
