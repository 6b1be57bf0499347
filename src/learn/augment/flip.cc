#include <algorithm>
#include <utility>

#include "base/random.h"
#include "learn/augment/augmentation.h"

namespace rematch {
namespace {

/// @param axis  0: left to right, 1: top to bottom
void mirror_objects(size_t axis, Objects& objects) {
  for (SceneObject& object : objects) {
    std::vector<int>& bins = object.geometry.bins;
    for (size_t i = axis; i < bins.size(); i += 2) bins[i] = kNumBins - 1 - bins[i];
    if (object.geometry.kind == GeometryKind::kBbox2d) {
      std::swap(bins[axis], bins[axis + 2]);
      continue;
    }
    for (size_t i = 2, j = bins.size() - 2; i < j; i += 2, j -= 2) {
      std::swap(bins[i], bins[j]);
      std::swap(bins[i + 1], bins[j + 1]);
    }
  }
}

/// Exchanges units that lie opposite each other.
void mirror_bytes(uint8_t* begin, int64_t num_units, int64_t unit_bytes) {
  for (int64_t low = 0, high = num_units - 1; low < high; ++low, --high) {
    uint8_t* unit = begin + low * unit_bytes;
    std::swap_ranges(unit, unit + unit_bytes, begin + high * unit_bytes);
  }
}

/// @tparam kAxis  0: left to right, 1: top to bottom
template <size_t kAxis, double AugmentSettings::* kShare, int64_t kPart>
constexpr Augmentation flip(void (*paint)(const ImageChange& change, Image& image)) {
  return {
      .is_on = [](const AugmentSettings& settings) { return settings.*kShare > 0; },
      .draw =
          [](const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
            if (random_uniform(key, 0) < settings.*kShare) change.orientation |= kPart;
          },
      .move =
          [](const ImageChange& change, int, int, Objects& objects) {
            if ((change.orientation & kPart) != 0) mirror_objects(kAxis, objects);
          },
      .paint = paint};
}

}  // namespace

const Augmentation kHflip = flip<0, &AugmentSettings::hflip, ImageChange::kMirrored>(
    [](const ImageChange& change, Image& image) {
      const int64_t row_bytes = image.width_px * kNumChannels;
      for (int64_t y = 0; change.is_mirrored() && y < image.height_px; ++y)
        mirror_bytes(image.rgb.data() + y * row_bytes, image.width_px, kNumChannels);
    });

const Augmentation kVflip = flip<1, &AugmentSettings::vflip, ImageChange::kUpsideDown>(
    [](const ImageChange& change, Image& image) {
      if (change.is_upside_down())
        mirror_bytes(image.rgb.data(), image.height_px, image.width_px * kNumChannels);
    });

}  // namespace rematch
