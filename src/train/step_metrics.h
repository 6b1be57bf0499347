#pragma once
#include <cstdint>
#include <vector>

#include "base/metrics.h"
#include "flow/segment.h"
#include "ranks/group.h"

namespace rematch {

/// The observations of one step, and how the samples of its window lie in micro-batches.
struct StepMetrics : MetricsBag {
  /// samples in each micro-batch of this rank's window; empty when the step reuses a window
  std::vector<int64_t> micro_batches;

  void set_micro_batches(const WindowSegments& segments) {
    for (const auto& micro_batch : segments) micro_batches.push_back(std::ssize(micro_batch));
  }

  template <typename Wire>
  friend void fields(Wire& wire, StepMetrics& metrics) {
    wire(static_cast<MetricsBag&>(metrics), metrics.micro_batches);
  }
};

/// The observations of a step over all ranks, on rank 0, as one process would have made them; on
/// the others what they were. What was observed once for each sample, or for each micro-batch, of
/// the window is put into the order of the window, so that sums have the same bits and percentiles
/// are over all samples. Of times ("time/…") those of the rank that needed longest are kept; of
/// anything else that a step observes once, rank 0's.
MetricsBag gather_metrics(Group& group, const StepMetrics& mine);

}  // namespace rematch
