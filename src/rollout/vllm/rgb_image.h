#pragma once
#include "vision/image.h"
#include "vision/patches.h"

namespace rematch {

/// The picture behind normalised patches, to the byte: the inverse of patchify(). What is decoded once serves both backends this way, and
/// vLLM's own processor can do its one pass of pre-processing.
/// @param patches  of patchify() with the same options. Cost: one pass over the pixels
Image rgb_image(const Patches& patches, const PatchOptions& options);

}  // namespace rematch
