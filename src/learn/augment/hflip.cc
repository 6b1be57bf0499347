#include "learn/augment/hflip.h"

#include <algorithm>

#include "base/random.h"
#include "learn/augment/mirror.h"

namespace rematch {

bool hflip_is_on(const AugmentSettings& settings) { return settings.hflip > 0; }

void draw_hflip(const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
  if (random_uniform(key, 0) < settings.hflip) change.orientation |= ImageChange::kMirrored;
}

void move_to_mirror(const ImageChange& change, int, int, std::vector<SceneObject>& objects) {
  if (change.is_mirrored()) mirror_objects(0, objects);
}

void paint_hflip(const ImageChange& change, Image& image) {
  if (!change.is_mirrored()) return;
  for (int y = 0; y < image.height_px; ++y) {
    uint8_t* row = image.rgb.data() + int64_t{y} * image.width_px * kNumChannels;
    for (int64_t left = 0, right = image.width_px - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * kNumChannels, row + (left + 1) * kNumChannels,
                       row + right * kNumChannels);
    }
  }
}

}  // namespace rematch
