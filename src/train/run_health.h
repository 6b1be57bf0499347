#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "evaluate/health.h"
#include "observe/sinks.h"
#include "resume/trainer_state.h"

namespace rematch {

/// The health of an evaluation against the first one of the run over the same set. The reference is
/// the first such entry of the log history with rollout scores, which is part of every checkpoint:
/// a resumed run compares with the same numbers.
/// @param now  scores of an evaluation; @param history  of the entries before it
/// @param eval_set  what `now` was measured over; empty = not known
/// @return none when there is no earlier evaluation, or no rollout scores
std::optional<Health> health_since_start(const std::vector<LogEntry>& history,
                                         const MetricValues& now, int64_t num_samples,
                                         const std::string& eval_set = {});

/// The same of the last evaluation in the history (the summary of a run).
std::optional<Health> health_at_end(const std::vector<LogEntry>& history, int64_t num_samples);

/// Its changes and the number of harms as logged: `health/…`.
MetricValues health_metrics(const Health& health);

}  // namespace rematch
