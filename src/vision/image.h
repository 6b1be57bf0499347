#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

inline constexpr int64_t kNumChannels = 3;  // red, green, blue

/// Width and height of an image.
struct ImageSize {
  int width_px = 0;
  int height_px = 0;

  bool operator==(const ImageSize&) const = default;
};

/// A decoded image, 8-bit RGB, row-major, no padding.
struct Image {
  int width_px = 0;
  int height_px = 0;
  std::vector<uint8_t> rgb;  ///< height·width·3

  ImageSize size() const { return {.width_px = width_px, .height_px = height_px}; }
};

/// A black image.
Image black_image(ImageSize size);

/// Decodes JPEG, PNG or WebP (by content, not by name) as transformers' convert_to_rgb of a Pillow
/// image does: alpha is composited on white, the colour profile of CMYK is ignored, 16-bit colours
/// keep their high byte, 16-bit grey is clamped to 255.
/// @throws UserError (environment) when unreadable; (data) when corrupt, EXIF-rotated or animated,
/// with the command that converts it
Image load_image(const std::string& path);

/// Decodes an image in memory. @param where  its name in errors, e.g. the path
Image decode_image(std::string_view bytes, const std::string& where);

/// Properties of an image that its header gives.
struct ImageFacts {
  ImageSize size;
  /// 16-bit grey without alpha: every level above 255 becomes white, here as in Pillow
  bool is_deep_grey = false;
};

/// Reads an image's header without decoding its pixels (the file is mapped).
/// @throws UserError as load_image for an unknown format, EXIF rotation, animation, too many pixels
ImageFacts read_image_facts(const std::string& path);
/// The size alone.
ImageSize read_image_size(const std::string& path);

}  // namespace rematch
