#pragma once
#include "vision/image.h"
#include "vision/patches.h"

namespace rematch {

/// The image of normalised patches, byte for byte: the inverse of patchify(). So an image is
/// decoded once for both backends, and vLLM's own processor can do its one pass of pre-processing.
/// @param patches  of patchify() with the same options. Cost: one pass over the pixels
Image rgb_image(const Patches& patches, const PatchOptions& options);

}  // namespace rematch
