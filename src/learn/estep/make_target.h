#pragma once
#include <memory>

#include "base/metrics.h"
#include "learn/estep/rollout_scorer.h"
#include "learn/estep/teach/target_policy.h"

namespace rematch {

/// Options of the step from a scored rollout to a segment.
struct TargetOptions {
  const AnswerFormat& format;
  TargetSettings target;
  int max_length = 0;  ///< most tokens of a segment; 0 = no cap
};

/// Applies the configured target policy to a scored rollout (BEHAVIOUR 7).
SegmentResult build_target(const ScoredRollout& rollout, const AnswerFormat& format,
                           const TargetSettings& target);

/// Builds the training segment of a scored rollout and adds its metrics (BEHAVIOUR 16).
/// @throws SegmentTooLong when it is longer than max_length
SegmentPtr make_target(const ScoredRollout& rollout, const TargetOptions& options,
                       MetricsBag& metrics);

}  // namespace rematch
