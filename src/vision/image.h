#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// A decoded image, 8-bit RGB, row-major, no padding.
struct Image {
  int width_px = 0;
  int height_px = 0;
  std::vector<uint8_t> rgb;  ///< height·width·3
};

/// Decodes JPEG, PNG or WebP (by content, not by name) as Pillow's convert("RGB") does; alpha is composited on white.
/// @throws UserError (environment) when unreadable; (data) when corrupt, EXIF-rotated, CMYK, 16-bit or animated: says how to convert
Image load_image(const std::string& path);

/// The same from bytes in memory. @param where  their name in errors, e.g. the path
Image decode_image(std::string_view bytes, const std::string& where);

/// Width and height of an image, from its header.
struct ImageSize {
  int width_px = 0;
  int height_px = 0;

  bool operator==(const ImageSize&) const = default;
};

/// Size of an image file without decoding its pixels (the file is mapped, only its header is read).
/// @throws UserError as load_image for what the header shows: unknown format, EXIF rotation, CMYK, 16 bits, animation, too many pixels
ImageSize read_image_size(const std::string& path);

}  // namespace rematch
