#pragma once
#include "model/vision/image.h"
#include "model/vision/patches.h"

namespace rematch {

/// Reconstructs the exact image from normalised patches: the inverse of patchify(). So training and
/// vLLM share one decoded image, and vLLM's processor can pre-process it.
/// @param patches  result of patchify() with the same options. Cost: one pass over the pixels
Image rgb_image(const Patches& patches, const PatchOptions& options);

}  // namespace rematch
