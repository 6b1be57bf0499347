#pragma once
#include <string>

#include "tools/import/foreign.h"

namespace rematch {

/// Finds the file and the size of each image, and compares them with what its annotation says. Each
/// image without a usable file, or whose file is in doubt, gets its defect.
/// @param images_dir  where images lie; empty: near the annotations
void join_images(ForeignSet& set, const std::string& images_dir);

}  // namespace rematch
