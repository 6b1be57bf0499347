#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/vision/image.h"

/// Shared by the decoders; included only inside vision/.
namespace rematch::vision {

enum class ImageFormat { kJpeg, kPng, kWebp };

/// The fields of an image header that are needed.
struct ImageHeader {
  ImageFormat format = ImageFormat::kPng;
  ImageSize size;
  bool has_alpha = false;     ///< WebP only
  bool is_cmyk = false;       ///< JPEG only: CMYK or YCCK
  bool is_deep_grey = false;  ///< PNG only: 16-bit grey without an alpha channel
  int orientation = 1;        ///< EXIF's, 1..8; `size` is that of the stored pixels
};

/// Recognises the format by its first bytes. Rejects animations, decompression bombs and other
/// files that must be converted first. Never reads outside `bytes`.
/// @throws UserError (data)
ImageHeader read_image_header(std::string_view bytes, const std::string& where);

/// Decodes the pixels as stored; ignores the EXIF orientation.
/// @throws UserError as decode_image
Image decode_stored(std::string_view bytes, const ImageHeader& header, const std::string& where);

/// Turns stored pixels as viewers show them.
/// @param orientation  EXIF's, 1..8
Image make_upright(Image stored, int orientation);

// One decoder per file. Each returns an Image of the size in the header. @throws UserError (data)
// when the stream is corrupt or truncated
Image decode_jpeg(std::string_view bytes, const ImageHeader& header, const std::string& where);
Image decode_png(std::string_view bytes, const ImageHeader& header, const std::string& where);
Image decode_webp(std::string_view bytes, const ImageHeader& header, const std::string& where);

/// Orientation tag (1..8) of an EXIF block, a TIFF structure with or without a leading "Exif\0\0";
/// 1 when absent or damaged, as viewers assume.
int exif_orientation(std::string_view exif);

/// One colour channel over white: bit for bit Pillow's alpha_composite on an opaque white
/// background.
/// @source Pillow AlphaComposite.c: 7 guard bits, division by 255 through shifts
inline uint8_t composite_on_white(uint8_t value, uint8_t alpha) {
  constexpr unsigned kGuardBits = 7;
  const unsigned weight = static_cast<unsigned>(alpha) << kGuardBits;
  const unsigned sum =
      value * weight + 255u * ((255u << kGuardBits) - weight) + (0x80u << kGuardBits);
  return static_cast<uint8_t>(((sum >> 8) + sum) >> 8 >> kGuardBits);
}

/// The error for a truncated or corrupt stream.
/// @param reason  the decoder's message
UserError corrupt_image(const std::string& where, const char* format, const std::string& reason);

}  // namespace rematch::vision
