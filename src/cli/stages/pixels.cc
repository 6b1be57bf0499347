// `rematch stage pixels`: an image file in, the vision tower's rows in a safetensors file out.
#include <ATen/ATen.h>
#include <fmt/core.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "cli/stage.h"
#include "vision/patches.h"
#include "vision/smart_resize.h"

namespace rematch {
namespace {

// Resizes as transformers' processor does: antialiased bicubic on uint8, the same kernel (MODEL 11).
Image resize(const Image& image, const PatchOptions& options, const std::string& where) {
  const PixelSize size = smart_resize(
      {.height_px = image.height_px, .width_px = image.width_px},
      {.side_multiple_px = options.side_multiple_px(), .min_pixels = options.min_pixels, .max_pixels = options.max_pixels}, where);
  if (size == PixelSize{.height_px = image.height_px, .width_px = image.width_px}) return image;
  const at::Tensor pixels_HWC =
      at::from_blob(const_cast<uint8_t*>(image.rgb.data()), {image.height_px, image.width_px, 3}, at::TensorOptions().dtype(at::kByte));
  // Contiguous planes, as the processor has them.
  const at::Tensor pixels_NCHW = pixels_HWC.permute({2, 0, 1}).contiguous().unsqueeze(0);
  const at::Tensor resized = at::_upsample_bicubic2d_aa(pixels_NCHW, {size.height_px, size.width_px}, /*align_corners=*/false);
  const at::Tensor resized_HWC = resized.squeeze(0).permute({1, 2, 0}).contiguous();
  Image result{.width_px = size.width_px, .height_px = size.height_px, .rgb = {}};
  result.rgb.resize(static_cast<size_t>(resized_HWC.numel()));
  std::memcpy(result.rgb.data(), resized_HWC.const_data_ptr<uint8_t>(), result.rgb.size());
  return result;
}

class PixelsStage : public Stage {
 public:
  explicit PixelsStage(const StageOptions& options)
      : options_(PatchOptions::from_model_dir(options.model_dir)), output_dir_(options.output_dir) {
    make_directories(output_dir_);
  }

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const std::string path = fields.text("image");
    const bool do_resize = fields.boolean_or("do_resize", false);
    fields.finish();
    Image image = load_image(path);
    if (do_resize) image = resize(image, options_, path);
    const Patches patches = patchify(image, options_, path);

    Json answer;
    answer["file"] = write(patches);
    answer["grid"] = patches.grid_thw;
    return answer;
  }

 private:
  std::string write(const Patches& patches) {
    const std::string file = line_file(output_dir_);
    const at::Tensor pixel_values = at::from_blob(const_cast<float*>(patches.pixel_values.data()), {patches.num_rows(), patches.row_width});
    const at::Tensor grid = at::tensor({patches.grid_thw[0], patches.grid_thw[1], patches.grid_thw[2]}, at::kLong).view({1, 3});
    write_safetensors(file, {{.name = "pixel_values", .tensor = pixel_values}, {.name = "image_grid_thw", .tensor = grid}});
    return file;
  }

  const PatchOptions options_;
  const std::string output_dir_;
};

}  // namespace

std::unique_ptr<Stage> make_pixels_stage(const StageOptions& options) { return std::make_unique<PixelsStage>(options); }

}  // namespace rematch
