#pragma once
#include <string>

#include "model/families/description.h"
#include "model/vision/patches.h"

namespace rematch {

/// Checks that the image processor's settings match the vision tower: otherwise patches would be
/// misread or in the wrong order.
/// @param model_dir  directory of both, for errors
/// @throws UserError (data) with one problem for each different value
void check_patches_fit(const PatchOptions& patches, const VisionDescription& vision,
                       const std::string& model_dir);

}  // namespace rematch
