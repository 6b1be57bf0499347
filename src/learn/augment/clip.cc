#include "learn/augment/clip.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/flow/clip_outline.h"

namespace rematch {
namespace {

constexpr int64_t kLastBin = kNumBins - 1;

/// One axis of a crop. Positions are in 1/999 px: bin b of a picture of n pixels lies at b·n.
struct Axis {
  int64_t side_px, begin_px, size_px;

  double low() const { return begin_px * kLastBin; }
  double high() const { return (begin_px + size_px) * kLastBin; }
  double position(int bin) const { return bin * side_px; }
  /// The bin in the crop, halves up.
  /// @param position  between low() and high()
  int bin(double position) const {
    const double bin = std::floor((position - low()) / size_px + 0.5);
    return std::clamp(static_cast<int>(bin), 0, static_cast<int>(kLastBin));
  }
};

/// The share of first..last that lies in the crop; of a single point, whether it does.
double visible_share(double first, double last, const Axis& axis) {
  const double begin = std::max(first, axis.low()), end = std::min(last, axis.high());
  if (first == last) return begin <= end ? 1 : 0;
  return std::max(0.0, end - begin) / (last - first);
}

double visible_share(const Outline& outline, const std::array<Axis, 2>& axes) {
  double share = 1;
  for (size_t axis = 0; axis < 2; ++axis) {
    const auto [low, high] =
        std::ranges::minmax_element(outline, {}, [axis](const auto& point) { return point[axis]; });
    share *= visible_share((*low)[axis], (*high)[axis], axes[axis]);
  }
  return share;
}

/// Bins of an outline inside the crop. Neighbours that fall on the same bins become one vertex, as
/// long as three are left.
std::vector<int> bins_of(const Outline& outline, const std::array<Axis, 2>& axes) {
  std::vector<std::array<int, 2>> vertices;
  for (const auto& vertex : outline)
    vertices.push_back({axes[0].bin(vertex[0]), axes[1].bin(vertex[1])});
  for (size_t i = 0; i < vertices.size() && vertices.size() > 3;) {
    if (vertices[i] == vertices[(i + 1) % vertices.size()])
      vertices.erase(vertices.begin() + i);
    else
      ++i;
  }
  std::vector<int> bins;
  for (const auto& [x, y] : vertices) bins.insert(bins.end(), {x, y});
  return bins;
}

}  // namespace

std::optional<Geometry> clip_to(const Geometry& geometry, const std::array<int64_t, 4>& crop_px,
                                int width_px, int height_px, double least_share) {
  const std::array<Axis, 2> axes{Axis{width_px, crop_px[0], crop_px[2]},
                                 Axis{height_px, crop_px[1], crop_px[3]}};
  Outline outline;
  for (size_t i = 0; i + 1 < geometry.bins.size(); i += 2) {
    outline.push_back({axes[0].position(geometry.bins[i]), axes[1].position(geometry.bins[i + 1])});
  }
  if (geometry.kind == GeometryKind::kBbox2d) {
    if (visible_share(outline, axes) < least_share) return std::nullopt;
    for (auto& corner : outline) {
      for (size_t axis = 0; axis < 2; ++axis)
        corner[axis] = std::clamp(corner[axis], axes[axis].low(), axes[axis].high());
    }
    return Geometry{GeometryKind::kBbox2d, bins_of(outline, axes)};
  }
  const double whole_area = outline_area(outline), flat_share = visible_share(outline, axes);
  outline = clip_outline(outline, {axes[0].low(), axes[1].low()}, {axes[0].high(), axes[1].high()});
  const double share = whole_area > 0 ? outline_area(outline) / whole_area : flat_share;
  if (share < least_share || outline.size() < 3) return std::nullopt;
  return Geometry{GeometryKind::kPoly, bins_of(outline, axes)};
}

}  // namespace rematch
