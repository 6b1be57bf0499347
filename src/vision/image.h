#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

/// A decoded picture, 8-bit RGB, row-major, no padding.
struct Image {
  int width_px = 0;
  int height_px = 0;
  std::vector<uint8_t> rgb;  ///< height·width·3
};

/// Decodes JPEG, PNG or WebP (by content, not by name) as Pillow's convert("RGB") does; alpha is composited on white.
/// @throws UserError (environment) when unreadable; (data) when corrupt, EXIF-rotated, CMYK, 16-bit or animated: says how to convert
Image load_image(const std::string& path);

}  // namespace rematch
