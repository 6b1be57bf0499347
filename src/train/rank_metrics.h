#pragma once
#include <vector>

#include "base/metrics.h"
#include "ranks/group.h"

namespace rematch {

/// The observations of a step over all ranks, on rank 0, as one process would have made them; on
/// the others what they were. What was observed once for each sample, or for each micro-batch, of
/// the window is put into the order of the window, so that sums have the same bits and percentiles
/// are over all samples. Of times ("time/…") those of the rank that needed longest are kept; of
/// anything else that a step observes once, rank 0's.
/// @param micro_batches  samples in each micro-batch of this rank's window; empty when the step
/// reuses a window
MetricsBag gather_metrics(Group& group, const MetricsBag& mine,
                          const std::vector<size_t>& micro_batches);

}  // namespace rematch
