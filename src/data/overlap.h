#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"

namespace rematch {

/// Reasons to distrust scores on validation data: images that are trained on, under any name of
/// the same file, and classes that are never trained (not for free text, where nearly every
/// description is new). A text for each; none when all is well. Cost: one stat an image.
std::vector<std::string> overlap_warnings(const Dataset& train, const Dataset& val);

}  // namespace rematch
