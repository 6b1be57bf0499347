#include "engine/rollout/vllm/rgb_image.h"

#include <fmt/core.h>

#include <cmath>

#include "base/error.h"

namespace rematch {
namespace {

// Level of a normalised value: the inverse of patchify().
class LevelOf {
 public:
  LevelOf(const PatchOptions& options, size_t channel)
      : mean_(options.image_mean[channel] / options.rescale_factor),
        deviation_(options.image_std[channel] / options.rescale_factor) {}

  uint8_t operator()(float value) const {
    // Far below the distance of grey levels, far above the float32 rounding of a round trip.
    constexpr double kMaxError = 0.01;
    const double level = static_cast<double>(value) * deviation_ + mean_;
    const double nearest = std::nearbyint(level);
    REMATCH_CHECK(std::abs(level - nearest) < kMaxError && nearest >= 0 && nearest <= 255,
                  fmt::format("grey level {}", level));
    return static_cast<uint8_t>(nearest);
  }
  uint8_t operator()(uint8_t level) const { return level; }

 private:
  double mean_, deviation_;
};

template <typename Value>
Image join_patches(const Patches& patches, const PatchOptions& options, int64_t num_frames,
                   const std::vector<Value>& values) {
  const int64_t patch = options.patch_size, merge = options.merge_size;
  const int64_t channel_len = num_frames * patch * patch;
  REMATCH_CHECK(std::ssize(values) == patches.num_rows() * kNumChannels * channel_len,
                fmt::format("{} values", values.size()));
  Image image = black_image({.width_px = static_cast<int>(patches.grid_thw[2] * patch),
                             .height_px = static_cast<int>(patches.grid_thw[1] * patch)});

  const Value* row = values.data();
  const auto read_patch = [&](int64_t patch_y, int64_t patch_x) {
    for (int64_t channel = 0; channel < kNumChannels; ++channel) {
      const LevelOf level_of(options, static_cast<size_t>(channel));
      const Value* value = row + channel * channel_len;  // the first frame; the others are equal
      for (int64_t y = 0; y < patch; ++y) {
        uint8_t* pixel = image.rgb.data() +
                         ((patch_y * patch + y) * image.width_px + patch_x * patch) * kNumChannels +
                         channel;
        for (int64_t x = 0; x < patch; ++x) pixel[x * kNumChannels] = level_of(*value++);
      }
    }
    row += kNumChannels * channel_len;
  };
  for (int64_t block_y = 0; block_y < patches.grid_thw[1]; block_y += merge) {
    for (int64_t block_x = 0; block_x < patches.grid_thw[2]; block_x += merge) {
      for (int64_t y = 0; y < merge; ++y) {
        for (int64_t x = 0; x < merge; ++x) read_patch(block_y + y, block_x + x);
      }
    }
  }
  return image;
}

}  // namespace

Image rgb_image(const Patches& patches, const PatchOptions& options) {
  if (patches.level_values != nullptr) return join_patches(patches, options, 1, patches.levels);
  return join_patches(patches, options, options.temporal_patch_size, patches.pixel_values);
}

}  // namespace rematch
