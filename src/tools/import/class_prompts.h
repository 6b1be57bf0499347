#pragma once
#include "tools/import/foreign.h"

namespace rematch {

/// Gives each image a prompt that lists class names: those of its objects, and some that it does
/// not show, in the order of the set's classes. An image without objects lists as many as an image
/// has on average. The choice depends on the name of the image alone.
/// @param negatives  share of the listed names that the image does not show, in [0, 1)
void add_class_prompts(ForeignSet& set, double negatives);

}  // namespace rematch
