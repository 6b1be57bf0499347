#include "learn/data/image_budget.h"

#include <algorithm>

namespace rematch {
namespace {

constexpr int64_t kMostTokens = 1280;  ///< of an image
constexpr double kShrunk = 0.9;        ///< of a side: more is the rounding to whole patches

int64_t tokens_of(const ImageSize& processed, const PatchOptions& patches) {
  const int64_t side = patches.side_multiple_px();
  return processed.width_px / side * (processed.height_px / side);
}

int64_t area_px(const ImageSize& size) { return int64_t{size.width_px} * size.height_px; }

}  // namespace

std::optional<ImageBudget> find_image_budget(const std::vector<Dataset>& data,
                                             const PatchOptions& patches) {
  if (!patches.do_resize) return std::nullopt;
  const int64_t area = int64_t{patches.side_multiple_px()} * patches.side_multiple_px();
  PatchOptions limited = patches;
  limited.max_pixels = std::min(patches.max_pixels, kMostTokens * area);
  ImageBudget budget{.max_pixels = limited.max_pixels,
                     .most_tokens = limited.max_pixels / area,
                     .is_of_processor = limited.max_pixels == patches.max_pixels};
  for (const Dataset& records : data) {
    for (const Sample& sample : records.samples()) {
      const ImageSize size{.width_px = sample.width_px, .height_px = sample.height_px};
      const ImageSize now = processed_size(size, limited, sample.where);
      const int64_t tokens = tokens_of(processed_size(size, patches, sample.where), patches);
      const bool is_smaller = now.width_px < size.width_px * kShrunk;
      if (budget.is_of_processor ? !is_smaller : tokens <= kMostTokens) continue;
      ++budget.num_larger;
      if (area_px(budget.largest) < area_px(size)) {
        budget.largest = size;
        budget.largest_tokens = tokens;
      }
    }
  }
  return budget.num_larger > 0 ? std::optional(budget) : std::nullopt;
}

}  // namespace rematch
