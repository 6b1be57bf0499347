#pragma once
#include <array>
#include <optional>

#include "base/flow/sample.h"

namespace rematch {

/// A geometry in the part of a picture that a crop keeps, or nothing when less than `least_share`
/// of its area lies there. Without width or height, length counts instead of area.
/// @param crop_px  left, top, width, height, inside the picture
std::optional<Geometry> clip_to(const Geometry& geometry, const std::array<int64_t, 4>& crop_px,
                                int width_px, int height_px, double least_share);

}  // namespace rematch
