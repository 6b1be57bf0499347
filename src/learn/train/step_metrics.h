#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/segment.h"
#include "base/metrics.h"
#include "engine/ranks/group.h"

namespace rematch {

/// The observations of one step, with the sizes of its micro-batches.
struct StepMetrics : MetricsBag {
  /// samples in each micro-batch of this rank's window; empty when the step reuses a window
  std::vector<int64_t> micro_batches;

  void set_micro_batches(const WindowSegments& segments) {
    for (const auto& micro_batch : segments) micro_batches.push_back(std::ssize(micro_batch));
  }

  friend void fields(auto& wire, StepMetrics& metrics) {
    wire(static_cast<MetricsBag&>(metrics), metrics.micro_batches);
  }
};

/// Gathers the observations of a step from all ranks on rank 0, as a single process would have made
/// them; the other ranks keep their own. Values observed once per sample, or once per micro-batch,
/// are put in window order, so that sums have the same bits and percentiles cover all samples.
/// Times ("time/…") are those of the slowest rank. Other values observed once per step are rank
/// 0's.
MetricsBag gather_metrics(Group& group, const StepMetrics& mine);

}  // namespace rematch
