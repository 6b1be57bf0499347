#pragma once
#include "base/settings/data.h"
#include "model/vision/image.h"
#include "model/vision/smart_resize.h"

namespace rematch {

/// Resizes an image with the bicubic filter, antialiased when it shrinks, on 8-bit values.
/// Bit-identical to `backend`. Both sizes must be positive. Cost: 4 · (width / new width + height /
/// new height, at least 2) multiplications per value.
/// @source Pillow 13: Resample.c; PyTorch: the uint8 kernel of upsample_bicubic2d with antialias
Image resize_bicubic(const Image& image, ImageSize size, ImageBackend backend);

}  // namespace rematch
