#pragma once
#include <functional>
#include <utility>

#include "base/metrics.h"
#include "ranks/group.h"
#include "estep/segment_source.h"

namespace rematch {

/// Leaves the segments out that a rollout made longer than `global_max_length`
/// (`data.on_bad_sample: skip`). Their rollouts remain in the step's rollout metrics.
class LongSegments {
 public:
  /// @param is_long  asked once about every segment. @param group  outlives it
  LongSegments(std::function<bool(const Segment&)> is_long, Group& group)
      : is_long_(std::move(is_long)), group_(group) {}

  /// Removes the long segments of a window; every rank calls it with its micro-batches. Adds their
  /// number to data/skipped_samples.
  /// @throws BadSample (data) on all ranks when none keeps a segment
  void leave_out(WindowSegments& segments, MetricsBag& metrics) const;

 private:
  std::function<bool(const Segment&)> is_long_;
  Group& group_;
};

}  // namespace rematch
