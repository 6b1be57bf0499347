#pragma once
#include <string>

#include "model/families/description.h"
#include "vision/patches.h"

namespace rematch {

/// Holds the image processor's settings against the vision tower: patches of another size would be
/// read as if they had the tower's, and another merge size puts the right patches into the wrong
/// order.
/// @param model_dir  where both come from, for the error
/// @throws UserError (data) with one problem for each value that differs
void check_patches_fit(const PatchOptions& patches, const VisionDescription& vision,
                       const std::string& model_dir);

}  // namespace rematch
