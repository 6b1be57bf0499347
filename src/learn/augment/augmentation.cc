#include "learn/augment/augmentation.h"

#include <utility>

#include "base/random.h"
#include "learn/augment/color.h"
#include "learn/augment/crop.h"
#include "learn/augment/hflip.h"
#include "learn/augment/rot90.h"
#include "learn/augment/vflip.h"

namespace rematch {
namespace {

// Separates this random stream from others with the same seed, epoch and sample.
constexpr uint64_t kAugmentStream = 0x6175676D656E74ULL;

}  // namespace

const std::vector<Augmentation>& augmentations() {
  static const std::vector<Augmentation> kTable = {
      {"crop", crop_is_on, draw_crop, move_to_crop, paint_crop},
      {"hflip", hflip_is_on, draw_hflip, move_to_mirror, paint_hflip},
      {"color", color_is_on, draw_color, nullptr, paint_color},
      {"vflip", vflip_is_on, draw_vflip, move_upside_down, paint_vflip},
      {"rot90", rot90_is_on, draw_rot90, move_by_quarters, paint_rot90},
  };
  return kTable;
}

Sample augment_sample(const Sample& sample, const AugmentSettings& settings, uint64_t seed,
                      int64_t epoch) {
  Sample result = sample;
  if (!settings.is_on()) return result;
  uint64_t row_idx = 0;
  for (const Augmentation& row : augmentations()) {
    const uint64_t key = random_key({kAugmentStream, row_idx++, seed, static_cast<uint64_t>(epoch),
                                     static_cast<uint64_t>(sample.sample_id)});
    if (!row.is_on(settings)) continue;
    row.draw(result, settings, key, result.change);
    if (row.move) row.move(result.change, sample.width_px, sample.height_px, result.objects);
  }
  if (result.change.swaps_sides()) std::swap(result.width_px, result.height_px);
  return result;
}

void change_image(Image& image, const ImageChange& change) {
  for (const Augmentation& row : augmentations()) row.paint(change, image);
}

}  // namespace rematch
