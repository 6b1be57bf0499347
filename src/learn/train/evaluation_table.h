#pragma once
#include <string>
#include <vector>

#include "base/observe/sinks.h"
#include "learn/resume/trainer_state.h"

namespace rematch {

/// A score's name as the table heads it, e.g. "gate F1"; other metrics keep theirs.
std::string score_name(const std::string& metric);

/// The scores of an evaluation as a small table of at most 80 columns. The row above shows the
/// first evaluation over the same set, if there is one.
/// @param history  earlier log entries.
/// @param eval_set  set behind `now`; empty = not known
std::string evaluation_table(const std::vector<LogEntry>& history, int64_t step,
                             const MetricValues& now, const std::string& eval_set);

}  // namespace rematch
