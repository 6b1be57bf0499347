#pragma once
#include <cstddef>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// Mirrors objects along an axis: bin b becomes 999 - b. An outline keeps its first vertex and its
/// direction of rotation. Twice is the identity.
/// @param axis  0: left to right, 1: top to bottom
void mirror_objects(size_t axis, std::vector<SceneObject>& objects);

}  // namespace rematch
