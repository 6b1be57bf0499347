#pragma once
#include <string>
#include <vector>

#include "report/run_data.h"

namespace rematch {

/// The curves of the runs' logs as inline SVG, one chart for each metric that any of them has;
/// evaluations are dots on the same axes.
std::string curves_html(const std::vector<RunData>& runs);

/// Where the time of a mean step went: a bar for each run that has a log, with its legend.
std::string time_split_html(const std::vector<RunData>& runs);

}  // namespace rematch
