#pragma once
#include <memory>
#include <vector>

#include "base/metrics.h"
#include "data/windows.h"
#include "flow/segment.h"

namespace rematch {

/// Segments of a window, one list for each micro-batch, in sample order.
using WindowSegments = std::vector<std::vector<std::shared_ptr<const Segment>>>;

/// The source of a window's segments: the E-step (stage 2) or the ground truth (stage 1). The loop
/// does not know which.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// Builds the segments of one window with the current weights. No gradients.
  /// @throws UserError naming the sample; Interrupted (nothing half done)
  virtual WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) = 0;
};

}  // namespace rematch
