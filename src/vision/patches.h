#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flow/grid.h"
#include "vision/image.h"

namespace rematch {

/// How pixels become vision-tower rows; read from processor_config.json / preprocessor_config.json (MODEL 6, 8).
struct PatchOptions {
  int patch_size = 16;
  int temporal_patch_size = 2;
  int merge_size = 2;
  std::array<double, 3> image_mean{0.5, 0.5, 0.5};
  std::array<double, 3> image_std{0.5, 0.5, 0.5};
  double rescale_factor = 1.0 / 255.0;  ///< grey level to 0..1
  int64_t min_pixels = 65536;           ///< area; only resizing tools read it
  int64_t max_pixels = 16777216;        ///< area; only resizing tools read it

  /// Reads the image processor's settings of a model directory: `image_processor` of processor_config.json, else preprocessor_config.json.
  /// Missing fields take the defaults of transformers' class (patch 14, CLIP mean and std), not those above.
  /// @throws UserError (data) for a missing file, damaged values, or settings that switch rescaling or normalising off
  static PatchOptions from_model_dir(const std::string& model_dir);

  bool operator==(const PatchOptions&) const = default;

  /// Sides of a legal image are multiples of this many pixels.
  int side_multiple_px() const { return patch_size * merge_size; }
};

/// One image as rows for the vision tower.
struct Patches {
  GridThw grid_thw{};               ///< patches: 1, height/patch, width/patch
  int64_t row_width = 0;            ///< 3·temporal_patch_size·patch_size²
  std::vector<float> pixel_values;  ///< [grid_t·grid_h·grid_w, row_width], rows in merge-block order, columns (C, T, p, p)

  int64_t num_rows() const { return grid_thw[0] * grid_thw[1] * grid_thw[2]; }
};

/// Normalises and cuts an RGB image; bit-equal to transformers' image processor without resizing.
/// @throws UserError (data) when a side is not a multiple of patch·merge, naming file, size and nearest legal size
Patches patchify(const Image& image, const PatchOptions& options, const std::string& where);

/// Grid of an image of this size without loading it: {1, height/patch, width/patch}, rounded down.
GridThw grid_of(int width_px, int height_px, const PatchOptions& options);

/// Rejects a size that would need resizing. @param where  the image's name in errors
/// @throws UserError (data) when a side is not a positive multiple of patch·merge, naming file, size and nearest legal size
void check_legal_size(int width_px, int height_px, const PatchOptions& options, const std::string& where);

}  // namespace rematch
