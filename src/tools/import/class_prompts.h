#pragma once
#include "tools/import/foreign.h"

namespace rematch {

/// Gives each image a prompt that lists class names: those of its objects, and some that it does
/// not show, in the order of the set's classes. An image without objects lists as many as an image
/// has on average; one of which no absent class is known is left out. The choice depends on the
/// name of the image alone. A class that may be there (ForeignImage::doubtful, objects that cannot
/// be read) is never listed as an absent one.
/// @param options  `negatives`: share of the listed names that the image does not show, in [0, 1);
/// `label`: the name of objects without one
void add_class_prompts(ForeignSet& set, const ImportOptions& options);

}  // namespace rematch
