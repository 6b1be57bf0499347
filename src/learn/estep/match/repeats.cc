#include "learn/estep/match/repeats.h"

#include <algorithm>

#include "base/flow/bins.h"
#include "base/flow/parsed.h"
#include "learn/estep/match/maskiou.h"

namespace rematch {
namespace {

/// The most pixels that two masks share. Drawing moves an edge by less than half a pixel.
double most_shared(const Aabb& a, const Aabb& b, int resolution) {
  const auto shared_px = [resolution](int64_t begin, int64_t end) {
    return std::max(0.0, static_cast<double>((end - begin) * resolution) / kNumBins + 2);
  };
  return shared_px(std::max(a.min_x, b.min_x), std::min(a.max_x, b.max_x)) *
         shared_px(std::max(a.min_y, b.min_y), std::min(a.max_y, b.max_y));
}

/// An upper bound of the maskIoU of two objects.
/// @param shared  the most pixels of both
double most_iou(double shared, int64_t area_a, int64_t area_b) {
  if (area_a == 0 || area_b == 0) return shared > 0 ? 1 : 0;  // compared by their boxes
  const double most = std::min(shared, static_cast<double>(std::min(area_a, area_b)));
  return most / (area_a + area_b - most);
}

}  // namespace

std::vector<int> repeated_objects(const Objects& objects, double iou, int resolution) {
  const std::vector<Geometry> geometries = get_geometries(objects);
  std::vector<Aabb> boxes;
  for (const Geometry& geometry : geometries) boxes.push_back(bounding_box(geometry));
  MaskCache masks(geometries, resolution);
  const auto is_repeat = [&](size_t later, size_t earlier) {
    const double shared = most_shared(boxes[later], boxes[earlier], resolution);
    if (shared == 0 || objects[later].desc != objects[earlier].desc) return false;
    const Mask &a = masks.get(static_cast<int>(later)), &b = masks.get(static_cast<int>(earlier));
    return most_iou(shared, a.area, b.area) >= iou &&
           mask_iou(geometries[later], a, geometries[earlier], b) >= iou;
  };

  std::vector<int> repeated;
  for (size_t i = 0; i < objects.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!is_repeat(i, j)) continue;
      repeated.push_back(static_cast<int>(i));
      break;
    }
  }
  return repeated;
}

}  // namespace rematch
