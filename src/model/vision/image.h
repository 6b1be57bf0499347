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

/// Decodes JPEG, PNG or WebP (by content, not by name) as viewers show it: turned as its EXIF
/// orientation says, like Pillow's ImageOps.exif_transpose, and then as transformers'
/// convert_to_rgb does: alpha is composited on white, the colour profile of CMYK is ignored, 16-bit
/// colours keep their high byte, 16-bit grey is clamped to 255.
/// @throws UserError (environment) when unreadable; (data) when corrupt or animated, with the
/// command that converts it
Image load_image(const std::string& path);

/// Decodes an image in memory.
/// @param where  its name in errors, e.g. the path
Image decode_image(std::string_view bytes, const std::string& where);

/// Properties of an image that its header gives.
struct ImageFacts {
  ImageSize size;  ///< as viewers show it
  /// 16-bit grey without alpha: every level above 255 becomes white, here as in Pillow
  bool is_deep_grey = false;
  int orientation = 1;  ///< EXIF's, 1..8: the stored pixels are turned by it to be upright

  bool is_turned() const { return orientation != 1; }
  /// True if turning swaps width and height.
  bool swaps_sides() const { return orientation >= 5; }
  /// The size of the stored pixels.
  ImageSize stored_size() const;
  /// True if a record of this size was drawn on the stored pixels and not on those that viewers
  /// show. Sizes cannot show it of square pictures and of those that are mirrored or turned by
  /// half.
  bool is_unturned(const ImageSize& record) const {
    return record != size && record == stored_size();
  }
  /// True if the picture is turned and no size of a record could show whether the record is.
  bool hides_turn() const { return is_turned() && size == stored_size(); }
};

/// Reads an image's header without decoding its pixels (the file is mapped).
/// @throws UserError as load_image for an unknown format, animation, too many pixels
ImageFacts read_image_facts(const std::string& path);
/// The size alone, as viewers show the image.
ImageSize read_image_size(const std::string& path);

}  // namespace rematch
