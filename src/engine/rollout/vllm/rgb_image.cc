#include "engine/rollout/vllm/rgb_image.h"

#include <fmt/core.h>

#include <cmath>

#include "base/error.h"

namespace rematch {

Image rgb_image(const Patches& patches, const PatchOptions& options) {
  // Far below the distance of grey levels, far above the float32 rounding of a round trip.
  constexpr double kMaxError = 0.01;
  const int64_t patch = options.patch_size, merge = options.merge_size;
  const int64_t channel_len = options.temporal_patch_size * patch * patch;
  REMATCH_CHECK(patches.row_width == kNumChannels * channel_len,
                fmt::format("{} values a row", patches.row_width));
  Image image = black_image({.width_px = static_cast<int>(patches.grid_thw[2] * patch),
                             .height_px = static_cast<int>(patches.grid_thw[1] * patch)});

  const float* row = patches.pixel_values.data();
  const auto read_patch = [&](int64_t patch_y, int64_t patch_x) {
    for (int64_t channel = 0; channel < kNumChannels; ++channel) {
      const double scale = 1.0 / options.rescale_factor;
      const double mean = options.image_mean[static_cast<size_t>(channel)] * scale;
      const double deviation = options.image_std[static_cast<size_t>(channel)] * scale;
      const float* value = row + channel * channel_len;  // the first frame; the others are equal
      for (int64_t y = 0; y < patch; ++y) {
        uint8_t* pixel = image.rgb.data() +
                         ((patch_y * patch + y) * image.width_px + patch_x * patch) * kNumChannels +
                         channel;
        for (int64_t x = 0; x < patch; ++x) {
          const double level = static_cast<double>(*value++) * deviation + mean;
          const double nearest = std::nearbyint(level);
          REMATCH_CHECK(std::abs(level - nearest) < kMaxError && nearest >= 0 && nearest <= 255,
                        fmt::format("grey level {}", level));
          pixel[x * kNumChannels] = static_cast<uint8_t>(nearest);
        }
      }
    }
    row += patches.row_width;
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

}  // namespace rematch
