#include "learn/augment/vflip.h"

#include <algorithm>

#include "base/random.h"
#include "learn/augment/mirror.h"

namespace rematch {

bool vflip_is_on(const AugmentSettings& settings) { return settings.vflip > 0; }

void draw_vflip(const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
  if (random_uniform(key, 0) < settings.vflip) change.orientation |= ImageChange::kUpsideDown;
}

void move_upside_down(const ImageChange& change, int, int, std::vector<SceneObject>& objects) {
  if (change.is_upside_down()) mirror_objects(1, objects);
}

void paint_vflip(const ImageChange& change, Image& image) {
  if (!change.is_upside_down()) return;
  const int64_t row_bytes = image.width_px * kNumChannels;
  for (int64_t top = 0, bottom = image.height_px - 1; top < bottom; ++top, --bottom) {
    uint8_t* row = image.rgb.data() + top * row_bytes;
    std::swap_ranges(row, row + row_bytes, image.rgb.data() + bottom * row_bytes);
  }
}

}  // namespace rematch
