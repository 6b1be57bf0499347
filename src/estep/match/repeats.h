#pragma once
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// Objects with the desc of an earlier one and a maskIoU of at least `iou` with it, ascending.
/// @param objects  descs trimmed. @param iou  (0, 1]. @param resolution  side of the maskIoU canvas
/// in pixels
std::vector<int> repeated_objects(const std::vector<SceneObject>& objects, double iou,
                                  int resolution);

}  // namespace rematch
