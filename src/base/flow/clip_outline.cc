#include "base/flow/clip_outline.h"

#include <cmath>
#include <cstddef>

namespace rematch {
namespace {

/// The part of an outline on one side of a line.
/// @param keeps_above  keeps coordinates ≥ bound, else ≤ bound
Outline clip_side(const Outline& outline, size_t axis, double bound, bool keeps_above) {
  const auto is_inside = [&](const std::array<double, 2>& vertex) {
    return keeps_above ? vertex[axis] >= bound : vertex[axis] <= bound;
  };
  Outline kept;
  for (size_t i = 0; i < outline.size(); ++i) {
    const std::array<double, 2>&from = outline[i], &to = outline[(i + 1) % outline.size()];
    if (is_inside(from)) kept.push_back(from);
    if (is_inside(from) == is_inside(to)) continue;
    const double part = (bound - from[axis]) / (to[axis] - from[axis]);
    std::array<double, 2> cut{};
    cut[axis] = bound;
    cut[1 - axis] = from[1 - axis] + part * (to[1 - axis] - from[1 - axis]);
    kept.push_back(cut);
  }
  return kept;
}

}  // namespace

Outline clip_outline(const Outline& outline, const std::array<double, 2>& low,
                     const std::array<double, 2>& high) {
  Outline kept = outline;
  for (size_t axis = 0; axis < 2; ++axis) {
    kept = clip_side(kept, axis, low[axis], true);
    kept = clip_side(kept, axis, high[axis], false);
  }
  return kept;
}

double outline_area(const Outline& outline) {
  double twice = 0;
  for (size_t i = 0; i < outline.size(); ++i) {
    const std::array<double, 2>&a = outline[i], &b = outline[(i + 1) % outline.size()];
    twice += a[0] * b[1] - b[0] * a[1];
  }
  return std::abs(twice) / 2;
}

}  // namespace rematch
