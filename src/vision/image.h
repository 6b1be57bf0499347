#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

inline constexpr int64_t kNumChannels = 3;  // red, green, blue

/// A decoded image, 8-bit RGB, row-major, no padding.
struct Image {
  int width_px = 0;
  int height_px = 0;
  std::vector<uint8_t> rgb;  ///< height·width·3
};

/// Decodes JPEG, PNG or WebP (by content, not by name) as transformers' convert_to_rgb of a Pillow
/// image does: alpha is composited on white, CMYK loses its profile, 16-bit colours keep their high
/// byte, 16-bit grey is cut at 255.
/// @throws UserError (environment) when unreadable; (data) when corrupt, EXIF-rotated or animated:
/// says how to convert
Image load_image(const std::string& path);

/// The same from bytes in memory. @param where  their name in errors, e.g. the path
Image decode_image(std::string_view bytes, const std::string& where);

/// Width and height of an image, from its header.
struct ImageSize {
  int width_px = 0;
  int height_px = 0;

  bool operator==(const ImageSize&) const = default;
};

/// What the header of an image shows.
struct ImageFacts {
  ImageSize size;
  /// 16-bit grey without alpha: every level above 255 becomes white, here as in Pillow
  bool is_deep_grey = false;
};

/// Reads an image's header without decoding its pixels (the file is mapped).
/// @throws UserError as load_image for what the header shows: unknown format, EXIF rotation,
/// animation, too many pixels
ImageFacts read_image_facts(const std::string& path);
/// The same: the size alone.
ImageSize read_image_size(const std::string& path);

}  // namespace rematch
