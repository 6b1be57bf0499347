#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/observe/sinks.h"
#include "learn/evaluate/health.h"
#include "learn/resume/trainer_state.h"

namespace rematch {

/// Compares an evaluation with the first one of the run over the same set. That one is taken from
/// the log history, which is part of every checkpoint: a resumed run compares with the same
/// numbers.
/// @param now  scores of the evaluation.
/// @param history  earlier log entries
/// @param eval_set  set behind `now`; empty = not known
/// @return nullopt when there is no earlier evaluation, or no rollout scores
std::optional<Health> health_since_start(const std::vector<LogEntry>& history,
                                         const MetricValues& now, int64_t num_samples,
                                         const std::string& eval_set = {});

/// The logged metrics `health/…`: every change, and the number of harms.
MetricValues health_metrics(const Health& health);

}  // namespace rematch
