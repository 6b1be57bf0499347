#include <algorithm>
#include <utility>

#include "base/random.h"
#include "learn/augment/augmentation.h"

namespace rematch {
namespace {

void turn_clockwise(Geometry& geometry) {
  std::vector<int>& bins = geometry.bins;
  for (size_t i = 0; i + 1 < bins.size(); i += 2) {
    const int x = bins[i];
    bins[i] = kNumBins - 1 - bins[i + 1];
    bins[i + 1] = x;
  }
  // The first corner of a box is now its top right one.
  if (geometry.kind == GeometryKind::kBbox2d) std::swap(bins[0], bins[2]);
}

Image turned_clockwise(const Image& image) {
  Image turned = black_image({.width_px = image.height_px, .height_px = image.width_px});
  uint8_t* out = turned.rgb.data();
  for (int64_t column = 0; column < image.width_px; ++column) {
    for (int64_t row = image.height_px - 1; row >= 0; --row) {
      const int64_t pixel = row * image.width_px + column;
      out = std::copy_n(image.rgb.data() + pixel * kNumChannels, kNumChannels, out);
    }
  }
  return turned;
}

void draw_rot90(const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
  if (random_uniform(key, 0) >= settings.rot90) return;
  const auto num_quarters = static_cast<int64_t>(1 + random_below(key, 1, 3));
  change.orientation += num_quarters * ImageChange::kQuarterTurn;
}

void move_by_quarters(const ImageChange& change, int, int, Objects& objects) {
  for (int quarter = 0; quarter < change.num_quarter_turns(); ++quarter) {
    for (SceneObject& object : objects) turn_clockwise(object.geometry);
  }
}

void paint_rot90(const ImageChange& change, Image& image) {
  for (int quarter = 0; quarter < change.num_quarter_turns(); ++quarter)
    image = turned_clockwise(image);
}

}  // namespace

const Augmentation kRot90{[](const AugmentSettings& settings) { return settings.rot90 > 0; },
                          draw_rot90, move_by_quarters, paint_rot90};

}  // namespace rematch
