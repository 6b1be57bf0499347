#pragma once
#include <vector>

#include "base/metrics.h"
#include "estep/match/labels.h"
#include "flow/parsed.h"
#include "settings/match.h"

namespace rematch {

/// Adds what an answer was worth under a matching as raw observations (`rollout/…`: objects, pairs,
/// labels, repeats), which observe/catalog turns into the sums, means and percentiles of BEHAVIOUR
/// 15 and 16.
/// @param matching  of these two lists under `options`
void observe_matching(const std::vector<SceneObject>& predictions,
                      const std::vector<SceneObject>& ground_truth, const Matching& matching,
                      const MatchSettings& options, const LabelMatch& labels, MetricsBag& metrics);

/// Adds how the reading of the answer ended (`rollout/parse_…`).
void observe_status(ParseStatus status, MetricsBag& metrics);

}  // namespace rematch
