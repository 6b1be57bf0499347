#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"

namespace rematch {

/// Reasons to distrust scores on validation data: images that are trained on, under any name or as
/// a copy, and classes that are never trained (not for free text, where nearly every
/// description is new). A text for each; none when all is well. Cost: one stat an
/// image, and 32 KiB of every pair of equal size (FileSet).
std::vector<std::string> overlap_warnings(const Dataset& train, const Dataset& val);

}  // namespace rematch
