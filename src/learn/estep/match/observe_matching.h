#pragma once
#include <vector>

#include "base/flow/parsed.h"
#include "base/metrics.h"
#include "base/settings/match.h"
#include "learn/estep/match/labels.h"

namespace rematch {

/// Adds the raw observations of an answer under a matching (`rollout/…`: objects, pairs, labels,
/// repeats). base/observe/catalog reduces them to the metrics of BEHAVIOUR 15 and 16.
/// @param matching  of the two lists
void observe_matching(const Objects& predictions, const Objects& ground_truth,
                      const Matching& matching, const MatchSettings& options,
                      const LabelMatch& labels, MetricsBag& metrics);

/// Adds the raw observations of a parse status (`rollout/parse_…`).
void observe_status(ParseStatus status, MetricsBag& metrics);

}  // namespace rematch
