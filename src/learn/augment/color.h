#pragma once
#include <cstdint>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

/// Changes brightness, contrast and saturation, in this order (a row of augmentations()).
namespace rematch {

bool color_is_on(const AugmentSettings& settings);
void draw_color(const Sample& sample, const AugmentSettings& settings, uint64_t key,
                ImageChange& change);
void paint_color(const ImageChange& change, Image& image);

}  // namespace rematch
