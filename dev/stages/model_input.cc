#include "model_input.h"

#include "base/error.h"
#include "base/file.h"
#include "engine/ranks/device.h"
#include "model/families/family.h"
#include "model/patch_fit.h"
#include "model/vision/image.h"

namespace rematch {

at::ScalarType dtype_of(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  throw UserError(ErrorKind::kConfig, {.error = "--dtype has an invalid value",
                                       .where = "--dtype",
                                       .what = name,
                                       .fix = "use float32 or bfloat16"});
}

PixelGetter pixels_from_files(const std::string& model_dir) {
  return [model_dir](const ImageRef& image) {
    const PatchOptions options = PatchOptions::from_model_dir(model_dir);
    check_patches_fit(options, describe_model(model_dir).vision, model_dir);
    return std::make_shared<const Patches>(patchify(load_image(image.path), options, image.path));
  };
}

ModelStage::ModelStage(const StageOptions& options)
    : device_(choose_device(options.device)),
      model_(Model::load(options.model_dir, {.dtype = dtype_of(options.dtype), .device = device_})),
      model_dir_(options.model_dir),
      output_dir_(options.output_dir) {
  make_directories(output_dir_);
}

}  // namespace rematch
