#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// A vertex on a canvas, in pixels.
struct Vertex {
  double x = 0.0;
  double y = 0.0;
};

/// A binary mask as run lengths in column-major order, alternating background, object, background,
/// …
struct Mask {
  /// the first run is background (may be 0), later ones are > 0; their sum is height * width
  std::vector<int64_t> runs;
  int64_t area = 0;  ///< pixels of the object
};

/// Fills a polygon as COCO's `rleFrPoly` does, bit for bit (even-odd, five sub-pixels per pixel).
/// @param vertices  at least one, finite, closed implicitly.
/// @param height,width  canvas, ≥ 1 Cost: O(5 * perimeter in pixels), plus a sort of the column
/// crossings.
/// @source pycocotools `rleFrPoly`
Mask rasterize_polygon(const std::vector<Vertex>& vertices, int height, int width);

/// Rasterises a geometry on an R×R canvas: bins clamped to 0..999, then `(v * R) / 1000.0`; a box
/// becomes its min/max quad.
/// @param resolution  R, ≥ 1
Mask rasterize(const Geometry& geometry, int resolution);

/// Number of pixels set in both masks (same canvas). Cost: O(runs of both).
int64_t intersection_area(const Mask& a, const Mask& b);

/// |A∩B| / |A∪B| of the masks of two geometries. When either mask is empty: the IoU of their
/// axis-aligned bounding boxes as sets of bins, both ends included, coordinates clamped to 0..999.
double mask_iou(const Geometry& geometry_a, const Mask& mask_a, const Geometry& geometry_b,
                const Mask& mask_b);

/// Masks of a list of geometries, rasterised on first use.
class MaskCache {
 public:
  /// `geometries` must outlive the cache.
  MaskCache(const std::vector<Geometry>& geometries, int resolution)
      : geometries_(geometries), resolution_(resolution), masks_(geometries.size()) {}
  const Mask& get(int index) {
    std::optional<Mask>& mask = masks_[index];
    if (!mask) mask = rasterize(geometries_[index], resolution_);
    return *mask;
  }

 private:
  const std::vector<Geometry>& geometries_;
  int resolution_;
  std::vector<std::optional<Mask>> masks_;
};

}  // namespace rematch
