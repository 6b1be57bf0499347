#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/strings.h"

namespace rematch {

/// Reduction of raw observations to one number.
enum class Reduction {
  kSum,
  kMean,
  kLast,
  kP90,
  kP99,
  kRatio,
  kPerStep,  ///< sum of the observations of a step; over several steps the mean of these
};

/// An entry of the only table of metrics (BEHAVIOUR 16 for training, 15 for evaluation).
struct MetricRow {
  std::string name;  ///< as logged
  std::string unit;  ///< "1", "tokens", "s", "objects", …
  Reduction reduction;
  std::string source;       ///< raw observation name; numerators joined with '+' for kRatio
  std::string denominator;  ///< kRatio only: raw names joined with '+'
  double factor;            ///< multiplies the ratio's numerator (2 for F1), else 1
  std::string meaning;      ///< one sentence
};

const std::vector<MetricRow>& metric_table();

/// Group of metrics. All groups share the raw names of rollout observations.
enum class MetricScope {
  kStep,        ///< an optimizer step
  kEvaluation,  ///< an evaluation on val_jsonl: "eval_…"
  kHealth,      ///< an evaluation against the first one: "health/…"
  kCoco,        ///< `rematch eval`: "coco_…"
  kGate,  ///< metrics of kEvaluation that depend on the IoU gate: the ratios of matched objects
};

/// Reduces observations to the metrics of a scope, in table order, without those that were not
/// observed. Undefined ratios are 0. In a step, `loss/NAME` of a loss term outside the table
/// follows last, as a mean.
/// @param bag  of several steps in order for a log line: counters are then sums over the steps,
/// losses and times means, ratios divide sums, and states such as the learning rate are the last.
/// @param num_steps  ≥ 1
/// @throws InternalError for any other unknown raw name: an uncatalogued metric is a bug
std::vector<std::pair<std::string, double>> reduce_metrics(const MetricsBag& bag,
                                                           MetricScope scope = MetricScope::kStep,
                                                           int64_t num_steps = 1);

/// reduce_metrics() of kGate, with the gate as suffix: `eval_rollout_f1_iou50` at 0.5.
std::vector<std::pair<std::string, double>> reduce_gate_metrics(const MetricsBag& bag, double gate);

/// Names of an evaluation's metrics in table order: the choices of
/// `training.metric_for_best_model`.
Strings evaluation_metrics(bool teacher_forced, bool rollouts);

}  // namespace rematch
