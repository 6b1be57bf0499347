#pragma once
#include <cstdint>
#include <string>

#include "model/vision/image.h"

namespace rematch {

/// The limits of smart_resize.
struct ResizeLimits {
  int side_multiple_px = 32;      ///< patch·merge
  int64_t min_pixels = 65536;     ///< smallest area
  int64_t max_pixels = 16777216;  ///< largest area
};

/// The size to which the image processor resizes an image: each side is a multiple of
/// `side_multiple_px`, the area is within the limits if possible, and the aspect ratio changes as
/// little as possible. Rounds as Python does (half to even). `size` must be positive.
/// @param where  the image's name in errors
/// @throws UserError (data) when one side is more than 200 times the other, or the result has more
/// than 2²⁶ pixels
/// @source transformers: smart_resize
ImageSize smart_resize(ImageSize size, const ResizeLimits& limits, const std::string& where);

/// The legal size closest to `size`: each side rounded to the nearest positive multiple of
/// `side_multiple_px`.
ImageSize nearest_legal_size(ImageSize size, int side_multiple_px);

}  // namespace rematch
