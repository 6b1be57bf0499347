#pragma once
#include <string>
#include <vector>

#include "learn/data/dataset.h"

namespace rematch {

/// Warns if scores on validation data would mislead: images that are also training images, under
/// any name or as a copy, and classes that are never trained (not for free text, where nearly every
/// description is new). One text per finding. Cost: one stat per image, and reading 32 KiB of files
/// of equal size (FileSet).
Strings overlap_warnings(const Dataset& train, const Dataset& val);

}  // namespace rematch
