#pragma once
#include "settings/data.h"
#include "vision/image.h"
#include "vision/smart_resize.h"

namespace rematch {

/// Resizes an image with the bicubic filter, antialiased where it shrinks, on 8-bit values: bit for
/// bit what `backend` gives. Both sizes must be positive. Cost: (width / new width + height / new
/// height, at least 2) · 4 multiplications a value.
/// @source Pillow 13: Resample.c; PyTorch: the uint8 kernel of upsample_bicubic2d with antialias
Image resize_bicubic(const Image& image, PixelSize size, ImageBackend backend);

}  // namespace rematch
