#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Height and width of an image in pixels.
struct PixelSize {
  int height_px = 0;
  int width_px = 0;

  bool operator==(const PixelSize&) const = default;
};

/// The limits of smart_resize.
struct ResizeLimits {
  int side_multiple_px = 32;      ///< patch·merge
  int64_t min_pixels = 65536;     ///< smallest area
  int64_t max_pixels = 16777216;  ///< largest area
};

/// The size to which the image processor resizes an image: sides are multiples of
/// `side_multiple_px`, the area lies within the limits where that is possible, the aspect ratio is
/// kept as closely as possible. Python's rounding (half to even). `size` must be positive.
/// @param where  the image's name in errors
/// @throws UserError (data) when one side is more than 200 times the other, or the result would not
/// fit 32 bits
/// @source transformers: smart_resize
PixelSize smart_resize(PixelSize size, const ResizeLimits& limits, const std::string& where);

/// The legal size closest to `size`: each side rounded to the nearest positive multiple of
/// `side_multiple_px`.
PixelSize nearest_legal_size(PixelSize size, int side_multiple_px);

}  // namespace rematch
