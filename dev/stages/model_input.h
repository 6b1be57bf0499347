#pragma once
#include <ATen/ATen.h>

#include <string>

#include "model/row.h"

namespace rematch {

/// The dtype that `--dtype` names. @throws UserError (config) for anything but float32 and bfloat16
at::ScalarType dtype_of(const std::string& name);

/// Pixels straight from the image files, cut as the model directory's image processor says. Its
/// file is read with the first image: text-only lines need none. @throws (when called) UserError
/// for an unreadable or illegal image
PixelGetter pixels_from_files(const std::string& model_dir);

}  // namespace rematch
