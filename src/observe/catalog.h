#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"

namespace rematch {

/// How raw observations become one number.
enum class Reduction { kSum, kMean, kLast, kP90, kP99, kRatio };

/// A row of the ONE table of metrics: BEHAVIOUR 16 for training, 15 for evaluation.
struct MetricRow {
  const char* name;  ///< as logged
  const char* unit;  ///< "1", "tokens", "s", "objects", …
  Reduction reduction;
  const char* source;       ///< raw observation name; numerators joined with '+' for kRatio
  const char* denominator;  ///< kRatio only: raw names joined with '+'
  double factor;            ///< multiplies the ratio's numerator (2 for F1), else 1
  const char* meaning;      ///< one sentence
};

const std::vector<MetricRow>& metric_table();

/// Which rows are wanted; what was observed of a rollout has the same raw names in all of them.
enum class MetricScope {
  kStep,        ///< of an optimizer step
  kEvaluation,  ///< of val_jsonl: "eval_…"
  kHealth,      ///< of an evaluation against the first one: "health/…"
  kCoco,        ///< of `rematch eval`: "coco_…"
  kGate,        ///< those of kEvaluation that tell of an IoU gate: the ratios of matched objects
};

/// Reduces observations to the rows of a scope, in table order; rows without observations are left
/// out. Undefined ratios are 0. `loss/NAME` of a loss term that is not in the table comes last in a
/// step, as its last value.
/// @throws InternalError for any other raw name that no row reads: an uncatalogued metric is a bug
std::vector<std::pair<std::string, double>> reduce_metrics(const MetricsBag& bag,
                                                           MetricScope scope = MetricScope::kStep);

/// What an evaluation measures, in table order: the names that `training.metric_for_best_model` may
/// give.
std::vector<std::string> evaluation_metrics(bool teacher_forced, bool rollouts);

/// The table as Markdown (docs/metrics.md).
std::string metrics_markdown();

}  // namespace rematch
