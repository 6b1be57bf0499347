#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "model/model.h"
#include "model/row.h"
#include "tools/stages/stage.h"

namespace rematch {

/// The dtype that `--dtype` names.
/// @throws UserError (config) for anything but float32 and bfloat16
at::ScalarType dtype_of(const std::string& name);

/// Returns a getter that reads pixels from image files, processed by the model directory's image
/// processor. The processor's file is read with the first image; text-only lines need none.
/// @throws (when called) UserError for an unreadable or illegal image
PixelGetter pixels_from_files(const std::string& model_dir);

/// Base of the stages that load a model and write files.
class ModelStage : public Stage {
 public:
  /// Creates the output directory.
  /// @throws UserError
  explicit ModelStage(const StageOptions& options);

 protected:
  const at::Device device_;
  const std::shared_ptr<Model> model_;
  const std::string model_dir_;
  const std::string output_dir_;
};

}  // namespace rematch
