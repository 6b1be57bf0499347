#include "model/vision/patches.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "model/vision/resample.h"

namespace rematch {
namespace {

// Normalised value of every grey level of every channel, in the arithmetic of transformers' two
// backends. torchvision's is fused, in float32: mean and std are scaled to grey levels, then
// subtracted and divided. (Multiplying by a reciprocal, or rescaling x first, would change half of
// the values.) Pillow's rescales x first, in float64.
LevelValues normalised_levels(const PatchOptions& options) {
  LevelValues levels{};
  const bool is_fused = options.backend == ImageBackend::kTorchvision;
  const float scale = is_fused ? static_cast<float>(1.0 / options.rescale_factor) : 1.0f;
  for (size_t channel = 0; channel < kNumChannels; ++channel) {
    const float mean = static_cast<float>(options.image_mean[channel]) * scale;
    const float std = static_cast<float>(options.image_std[channel]) * scale;
    for (size_t level = 0; level < 256; ++level) {
      const auto x = static_cast<double>(level);
      levels[channel][level] =
          (static_cast<float>(is_fused ? x : x * options.rescale_factor) - mean) / std;
    }
  }
  return levels;
}

Patches empty_patches(const Image& image, const PatchOptions& options) {
  Patches patches;
  patches.grid_thw = grid_of(image.width_px, image.height_px, options);
  patches.row_width =
      kNumChannels * options.temporal_patch_size * options.patch_size * options.patch_size;
  return patches;
}

// Writes `num_frames` equal frames of every patch, each level as value_of(channel, level).
template <typename Value, typename ValueOf>
void cut(const Image& image, const PatchOptions& options, int64_t num_frames,
         const ValueOf& value_of, std::vector<Value>& values) {
  const int64_t patch = options.patch_size, merge = options.merge_size;
  const GridThw grid = grid_of(image.width_px, image.height_px, options);
  const size_t frame_size = static_cast<size_t>(patch * patch);
  values.resize(static_cast<size_t>(grid[1] * grid[2] * kNumChannels * num_frames) * frame_size);
  Value* out = values.data();
  const auto write_patch = [&](int64_t patch_y, int64_t patch_x) {
    for (size_t channel = 0; channel < kNumChannels; ++channel) {
      const Value* first_frame = out;
      for (int64_t y = 0; y < patch; ++y) {
        const uint8_t* pixel =
            image.rgb.data() +
            ((patch_y * patch + y) * image.width_px + patch_x * patch) * kNumChannels + channel;
        for (int64_t x = 0; x < patch; ++x) *out++ = value_of(channel, pixel[x * kNumChannels]);
      }
      // A still image is a video of equal frames.
      for (int64_t frame = 1; frame < num_frames; ++frame, out += frame_size)
        std::memcpy(out, first_frame, frame_size * sizeof(Value));
    }
  };
  for (int64_t block_y = 0; block_y < grid[1]; block_y += merge) {
    for (int64_t block_x = 0; block_x < grid[2]; block_x += merge) {
      for (int64_t y = 0; y < merge; ++y) {
        for (int64_t x = 0; x < merge; ++x) write_patch(block_y + y, block_x + x);
      }
    }
  }
}

}  // namespace

Patches cut_into_patches(const Image& image, const PatchOptions& options) {
  Patches patches = empty_patches(image, options);
  const LevelValues values = normalised_levels(options);
  cut(
      image, options, options.temporal_patch_size,
      [&](size_t channel, uint8_t level) { return values[channel][level]; }, patches.pixel_values);
  return patches;
}

Patches cut_into_levels(const Image& image, const PatchOptions& options) {
  Patches patches = empty_patches(image, options);
  patches.level_values = std::make_shared<const LevelValues>(normalised_levels(options));
  cut(image, options, 1, [](size_t, uint8_t level) { return level; }, patches.levels);
  return patches;
}

namespace {

std::string resize_advice(ImageSize legal) {
  return fmt::format("resize the file to {} x {} px and correct its record's width and height",
                     legal.width_px, legal.height_px);
}

}  // namespace

ImageSize processed_size(ImageSize size, const PatchOptions& options, const std::string& where) {
  const int multiple = options.side_multiple_px();
  if (!options.do_resize) {
    if (size.width_px > 0 && size.height_px > 0 && size.width_px % multiple == 0 &&
        size.height_px % multiple == 0)
      return size;
    throw data_error({.error = fmt::format("image sides are not multiples of {} px", multiple),
                      .where = where,
                      .what = fmt::format("{} x {} px (width x height), and the model's image "
                                          "processor does not resize (do_resize: false)",
                                          size.width_px, size.height_px),
                      .fix = fmt::format("{} (the nearest legal size)",
                                         resize_advice(nearest_legal_size(size, multiple)))});
  }
  const ImageSize result = smart_resize(size,
                                        {.side_multiple_px = multiple,
                                         .min_pixels = options.min_pixels,
                                         .max_pixels = options.max_pixels},
                                        where);
  if (options.on_resize == ImageResize::kRefuse && result != size) {
    throw data_error(
        {.error = "the model's image processor would resize an image",
         .where = where,
         .what = fmt::format("{} x {} px (width x height) would become {} x {} px, and "
                             "template.image_resize is refuse",
                             size.width_px, size.height_px, result.width_px, result.height_px),
         .fix = fmt::format("{}, or set template.image_resize: processor", resize_advice(result))});
  }
  return result;
}

GridThw grid_of(int width_px, int height_px, const PatchOptions& options) {
  return {1, height_px / options.patch_size, width_px / options.patch_size};
}

GridThw processed_grid(ImageSize size, const PatchOptions& options, const std::string& where) {
  const ImageSize processed = processed_size(size, options, where);
  return grid_of(processed.width_px, processed.height_px, options);
}

Image process_image(Image image, const PatchOptions& options, const std::string& where) {
  const ImageSize size = image.size();
  const ImageSize processed = processed_size(size, options, where);
  const size_t num_bytes =
      static_cast<size_t>(image.width_px) * static_cast<size_t>(image.height_px) * kNumChannels;
  REMATCH_CHECK(image.rgb.size() == num_bytes,
                fmt::format("{} bytes, {} expected", image.rgb.size(), num_bytes));
  return processed == size ? std::move(image) : resize_bicubic(image, processed, options.backend);
}

Patches patchify(const Image& image, const PatchOptions& options, const std::string& where) {
  return cut_into_patches(process_image(image, options, where), options);
}

}  // namespace rematch
