#pragma once
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// Least maskIoU of a repeated prediction in the metric `duplicates`.
inline constexpr double kRepeatIou = 0.5;

/// Ascending indices of objects that repeat an earlier one: same desc, maskIoU ≥ `iou`.
/// @param objects  descs trimmed.
/// @param iou  (0, 1].
/// @param resolution  side of the maskIoU canvas in pixels
std::vector<int> repeated_objects(const Objects& objects, double iou, int resolution);

}  // namespace rematch
