#include "augment/hflip.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace rematch {

bool hflip_is_on(const AugmentSettings& settings) { return settings.hflip > 0; }

void draw_hflip(const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
  change.is_flipped = random_uniform(key, 0) < settings.hflip ? 1 : 0;
}

void move_to_mirror(const ImageChange& change, int, int, std::vector<SceneObject>& objects) {
  if (change.is_flipped == 0) return;
  for (SceneObject& object : objects) {
    std::vector<int>& bins = object.geometry.bins;
    for (size_t i = 0; i < bins.size(); i += 2) bins[i] = kNumBins - 1 - bins[i];
    if (object.geometry.kind == GeometryKind::kBbox2d) {
      std::swap(bins[0], bins[2]);
      continue;
    }
    for (size_t i = 2, j = bins.size() - 2; i < j; i += 2, j -= 2) {
      std::swap(bins[i], bins[j]);
      std::swap(bins[i + 1], bins[j + 1]);
    }
  }
}

void paint_hflip(const ImageChange& change, Image& image) {
  if (change.is_flipped == 0) return;
  for (int y = 0; y < image.height_px; ++y) {
    uint8_t* row = image.rgb.data() + int64_t{y} * image.width_px * kNumChannels;
    for (int64_t left = 0, right = image.width_px - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * kNumChannels, row + (left + 1) * kNumChannels,
                       row + right * kNumChannels);
    }
  }
}

}  // namespace rematch
