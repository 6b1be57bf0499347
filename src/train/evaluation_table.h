#pragma once
#include <string>
#include <vector>

#include "observe/sinks.h"
#include "resume/trainer_state.h"

namespace rematch {

/// The scores of an evaluation as a small table, below those of the first one over the same set
/// when there is an earlier one; at most 80 columns.
/// @param history  of the entries before it. @param eval_set  what `now` was measured over; empty =
/// not known
std::string evaluation_table(const std::vector<LogEntry>& history, int64_t step,
                             const MetricValues& now, const std::string& eval_set);

}  // namespace rematch
