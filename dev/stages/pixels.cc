// `rematch-stages stage pixels`: an image file in, the vision tower's rows in a safetensors file
// out.
#include <ATen/ATen.h>
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "model/checkpoint/safetensors.h"
#include "model/vision/patches.h"
#include "tool_stages.h"

namespace rematch {
namespace {

class PixelsStage : public Stage {
 public:
  explicit PixelsStage(const StageOptions& options)
      : options_(PatchOptions::from_model_dir(options.model_dir)), output_dir_(options.output_dir) {
    make_directories(output_dir_);
  }

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const std::string path = fields.text("image");
    PatchOptions options = options_;
    options.do_resize = fields.boolean_or("do_resize", options.do_resize);
    options.backend = read_backend(fields);
    fields.finish();
    const Patches patches = patchify(load_image(path), options, path);

    Json answer;
    answer["file"] = write(patches);
    answer["grid"] = patches.grid_thw;
    return answer;
  }

 private:
  static ImageBackend read_backend(JsonFields& fields) {
    const std::string name = fields.text_or("backend", name_of(ImageBackend::kTorchvision));
    const std::optional<ImageBackend> backend = value_of<ImageBackend>(name);
    if (!backend)
      fields.fail("backend", fmt::format("expected torchvision or pil, found {}", name));
    return *backend;
  }

  std::string write(const Patches& patches) {
    const std::string file = line_file(output_dir_, line_name_);
    const at::Tensor pixel_values = at::from_blob(const_cast<float*>(patches.pixel_values.data()),
                                                  {patches.num_rows(), patches.row_width});
    const at::Tensor grid =
        at::tensor({patches.grid_thw[0], patches.grid_thw[1], patches.grid_thw[2]}, at::kLong)
            .view({1, 3});
    write_safetensors(file, {{.name = "pixel_values", .tensor = pixel_values},
                             {.name = "image_grid_thw", .tensor = grid}});
    return file;
  }

  const PatchOptions options_;
  const std::string output_dir_;
};

}  // namespace

std::unique_ptr<Stage> make_pixels_stage(const StageOptions& options) {
  return std::make_unique<PixelsStage>(options);
}

}  // namespace rematch
