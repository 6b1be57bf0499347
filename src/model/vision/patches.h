#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/flow/grid.h"
#include "base/settings/data.h"
#include "model/vision/image.h"
#include "model/vision/smart_resize.h"

namespace rematch {

/// Conversion of pixels to vision-tower rows; read from processor_config.json /
/// preprocessor_config.json (MODEL 6, 8).
struct PatchOptions {
  int patch_size = 16;
  int temporal_patch_size = 2;
  int merge_size = 2;
  std::array<double, 3> image_mean{0.5, 0.5, 0.5};
  std::array<double, 3> image_std{0.5, 0.5, 0.5};
  double rescale_factor = 1.0 / 255.0;  ///< grey level to 0..1
  /// area of the smallest image, when the processor resizes
  int64_t min_pixels = 65536;
  /// area of the largest image, when the processor resizes
  int64_t max_pixels = 16777216;
  /// true: the processor resizes; false: sides must be multiples of side_multiple_px()
  bool do_resize = false;
  /// resize such an image, or reject it
  ImageResize on_resize = ImageResize::kProcessor;
  ImageBackend backend = ImageBackend::kTorchvision;

  /// Reads the image processor's settings of a model directory: `image_processor` of
  /// processor_config.json, else preprocessor_config.json. Missing fields take the defaults of
  /// transformers' class (patch 14, CLIP mean and std, resized), not those above.
  /// @param images  settings of the configuration, which take precedence
  /// @throws UserError (data) for a missing file, damaged values, or settings that turn off
  /// rescaling or normalising; (config) when min_pixels exceeds max_pixels
  static PatchOptions from_model_dir(const std::string& model_dir,
                                     const ImageSettings& images = {});

  bool operator==(const PatchOptions&) const = default;

  /// Sides of a legal image are multiples of this many pixels.
  int side_multiple_px() const { return patch_size * merge_size; }
};

/// Normalised value of every grey level of every channel.
using LevelValues = std::array<std::array<float, 256>, kNumChannels>;

/// One image as rows for the vision tower, in merge-block order: values, or the grey levels that a
/// device turns into the same values, an eighth of the bytes.
struct Patches {
  GridThw grid_thw{};     ///< patches: 1, height/patch, width/patch
  int64_t row_width = 0;  ///< 3·temporal_patch_size·patch_size²
  /// [grid_t·grid_h·grid_w, row_width], columns (C, T, p, p); empty with `levels`
  std::vector<float> pixel_values;
  /// [grid_t·grid_h·grid_w, 3·patch_size²], columns (C, p, p): one frame, which the others repeat
  std::vector<uint8_t> levels;
  std::shared_ptr<const LevelValues> level_values;  ///< with `levels`

  int64_t num_rows() const { return grid_thw[0] * grid_thw[1] * grid_thw[2]; }
};

/// The size at which an image is cut into patches: the output size of the image processor. Needs no
/// pixels.
/// @param where  the image's name in errors
/// @throws UserError (data) when one side is more than 200 times the other; when the processor does
/// not resize and a side is not a multiple of patch·merge; or when it would resize but
/// template.image_resize is `refuse`. The last two name the size to use instead
ImageSize processed_size(ImageSize size, const PatchOptions& options, const std::string& where);

/// Resizes an RGB image to processed_size(), normalises it and cuts it into patches. Bit-identical
/// to transformers' image processor of options.backend.
/// @throws UserError (data) as processed_size()
Patches patchify(const Image& image, const PatchOptions& options, const std::string& where);

/// The first half of patchify(): the image at processed_size(), an eighth of the memory of its
/// patches.
/// @throws UserError (data) as processed_size()
Image process_image(Image image, const PatchOptions& options, const std::string& where);
/// The second half, without errors.
/// @param image  of process_image()
Patches cut_into_patches(const Image& image, const PatchOptions& options);
/// The same as grey levels, for a tower on a device.
Patches cut_into_levels(const Image& image, const PatchOptions& options);

/// Grid of an image of a processed size: {1, height/patch, width/patch}, rounded down.
GridThw grid_of(int width_px, int height_px, const PatchOptions& options);

/// Width and height of the processed image that has this grid.
inline std::array<int, 2> resized_px(const GridThw& grid, const PatchOptions& options) {
  return {static_cast<int>(grid[2]) * options.patch_size,
          static_cast<int>(grid[1]) * options.patch_size};
}
/// Grid of an image of this size before resizing.
/// @throws UserError (data) as processed_size()
GridThw processed_grid(ImageSize size, const PatchOptions& options, const std::string& where);

}  // namespace rematch
