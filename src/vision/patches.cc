#include "vision/patches.h"

#include <fmt/core.h>

#include <cstring>

#include "base/error.h"
#include "vision/smart_resize.h"

namespace rematch {
namespace {

constexpr int kNumChannels = 3;

// Normalised value of every grey level of every channel. The arithmetic is the fused form of transformers' torchvision backend, in float32:
// mean and std are scaled to grey levels first, then a rounded subtraction and a true division. A reciprocal, or rescaling x first,
// differs in half of the values.
std::array<std::array<float, 256>, kNumChannels> normalised_levels(const PatchOptions& options) {
  std::array<std::array<float, 256>, kNumChannels> levels{};
  const float scale = static_cast<float>(1.0 / options.rescale_factor);
  for (size_t channel = 0; channel < kNumChannels; ++channel) {
    const float mean = static_cast<float>(options.image_mean[channel]) * scale;
    const float std = static_cast<float>(options.image_std[channel]) * scale;
    for (size_t level = 0; level < 256; ++level) levels[channel][level] = (static_cast<float>(level) - mean) / std;
  }
  return levels;
}

}  // namespace

GridThw grid_of(int width_px, int height_px, const PatchOptions& options) {
  return {1, height_px / options.patch_size, width_px / options.patch_size};
}

void check_legal_size(int width_px, int height_px, const PatchOptions& options, const std::string& where) {
  const int multiple = options.side_multiple_px();
  if (width_px > 0 && height_px > 0 && width_px % multiple == 0 && height_px % multiple == 0) return;
  const PixelSize legal = nearest_legal_size({.height_px = height_px, .width_px = width_px}, multiple);
  throw UserError(ErrorKind::kData,
                  {.error = fmt::format("image sides are not multiples of {} px", multiple),
                   .where = where,
                   .what = fmt::format("{} x {} px (width x height); images are never resized here", width_px, height_px),
                   .fix = fmt::format("resize the file to {} x {} px (the nearest legal size) and correct its record's width and height",
                                      legal.width_px, legal.height_px)});
}

Patches patchify(const Image& image, const PatchOptions& options, const std::string& where) {
  check_legal_size(image.width_px, image.height_px, options, where);
  const size_t num_bytes = static_cast<size_t>(image.width_px) * static_cast<size_t>(image.height_px) * kNumChannels;
  REMATCH_CHECK(image.rgb.size() == num_bytes, fmt::format("{} bytes, {} expected", image.rgb.size(), num_bytes));
  const int64_t patch = options.patch_size, merge = options.merge_size, num_frames = options.temporal_patch_size;
  Patches result;
  result.grid_thw = grid_of(image.width_px, image.height_px, options);
  result.row_width = kNumChannels * num_frames * patch * patch;
  result.pixel_values.resize(static_cast<size_t>(result.num_rows() * result.row_width));

  const auto levels = normalised_levels(options);
  const size_t frame_size = static_cast<size_t>(patch * patch);
  float* out = result.pixel_values.data();
  const auto write_patch = [&](int64_t patch_y, int64_t patch_x) {
    for (size_t channel = 0; channel < kNumChannels; ++channel) {
      const float* first_frame = out;
      for (int64_t y = 0; y < patch; ++y) {
        const uint8_t* pixel = image.rgb.data() + ((patch_y * patch + y) * image.width_px + patch_x * patch) * kNumChannels + channel;
        for (int64_t x = 0; x < patch; ++x) *out++ = levels[channel][pixel[x * kNumChannels]];
      }
      // A still picture is a video whose frames are all the same.
      for (int64_t frame = 1; frame < num_frames; ++frame, out += frame_size) std::memcpy(out, first_frame, frame_size * sizeof(float));
    }
  };
  for (int64_t block_y = 0; block_y < result.grid_thw[1]; block_y += merge) {
    for (int64_t block_x = 0; block_x < result.grid_thw[2]; block_x += merge) {
      for (int64_t y = 0; y < merge; ++y) {
        for (int64_t x = 0; x < merge; ++x) write_patch(block_y + y, block_x + x);
      }
    }
  }
  return result;
}

}  // namespace rematch
