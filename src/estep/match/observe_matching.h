#pragma once
#include <vector>

#include "base/metrics.h"
#include "estep/match/labels.h"
#include "flow/parsed.h"
#include "settings/match.h"

namespace rematch {

/// Adds the raw observations of an answer under a matching (`rollout/…`: objects, pairs, labels,
/// repeats). observe/catalog reduces them to the metrics of BEHAVIOUR 15 and 16.
/// @param matching  of the two lists
void observe_matching(const std::vector<SceneObject>& predictions,
                      const std::vector<SceneObject>& ground_truth, const Matching& matching,
                      const MatchSettings& options, const LabelMatch& labels, MetricsBag& metrics);

/// Adds the raw observations of a parse status (`rollout/parse_…`).
void observe_status(ParseStatus status, MetricsBag& metrics);

}  // namespace rematch
