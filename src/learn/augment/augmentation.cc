#include "learn/augment/augmentation.h"

#include <utility>

#include "base/random.h"
#include "learn/augment/absent_classes.h"

namespace rematch {
namespace {

// Separates this random stream from others with the same seed, epoch and sample.
constexpr uint64_t kAugmentStream = 0x6175676D656E74ULL;
// All kinds, in the order of application. A row's place also separates its random stream from
// those of the others, so new rows come last.
const Augmentation* const kRows[] = {&kCrop, &kHflip, &kColor, &kVflip, &kRot90};
constexpr uint64_t kAbsentRow = 0x616273656E74ULL;  // in the place of a row of the table

}  // namespace

Sample augment_sample(const Sample& sample, const AugmentSettings& settings, uint64_t seed,
                      int64_t epoch) {
  Sample result = sample;
  if (!settings.is_on()) return result;
  const auto key_of = [&](uint64_t row) {
    return random_key(kAugmentStream, row, seed, epoch, sample.sample_id);
  };
  uint64_t row_idx = 0;
  for (const Augmentation* row : kRows) {
    const uint64_t key = key_of(row_idx++);
    if (!row->is_on(settings)) continue;
    row->draw(result, settings, key, result.change);
    if (row->move) row->move(result.change, sample.width_px, sample.height_px, result.objects);
  }
  draw_absent_classes(result, settings, key_of(kAbsentRow));
  if (result.change.swaps_sides()) std::swap(result.width_px, result.height_px);
  return result;
}

void change_image(Image& image, const ImageChange& change) {
  for (const Augmentation* row : kRows) row->paint(change, image);
}

}  // namespace rematch
