#include <fmt/core.h>
#include <webp/decode.h>

#include "model/vision/image_formats.h"

namespace rematch::vision {
namespace {

// Pillow's limit against decompression bombs: beyond this it refuses to open a file.
constexpr int64_t kMaxPixels = 178'956'970;
constexpr const char* kConvertCommand =
    "python3 -c 'from PIL import Image, ImageOps; "
    "ImageOps.exif_transpose(Image.open(\"IN\")).convert(\"RGB\").save(\"OUT.png\")'";

uint32_t big_endian(std::string_view bytes, size_t offset, size_t num_bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < num_bytes; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

uint32_t little_endian32(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

[[noreturn]] void refuse(const std::string& where, const std::string& error,
                         const std::string& what,
                         const std::string& fix = fmt::format("convert it: {}", kConvertCommand)) {
  throw data_error({.error = error, .where = where, .what = what, .fix = fix});
}

// A block that says "upright" does not override an earlier one.
void note_orientation(std::string_view exif, ImageHeader& header) {
  if (const int orientation = exif_orientation(exif); orientation != 1)
    header.orientation = orientation;
}

ImageSize checked_size(int64_t width, int64_t height, const std::string& where) {
  if (width <= 0 || height <= 0)
    refuse(where, "the image has no pixels", fmt::format("{} x {} px", width, height),
           "replace the file");
  if (width > kMaxPixels || height > kMaxPixels || width * height > kMaxPixels) {
    refuse(where, "the image is too large",
           fmt::format("{} x {} px; the limit is {} pixels", width, height, kMaxPixels),
           "scale it down, or replace the file if it is damaged");
  }
  return {.width_px = static_cast<int>(width), .height_px = static_cast<int>(height)};
}

// Walks the chunks: IHDR first, then eXIf (rotation) and acTL (animation), in any position.
ImageHeader png_header(std::string_view bytes, const std::string& where) {
  constexpr size_t kSignature = 8, kChunkFrame = 12;
  ImageHeader header{.format = ImageFormat::kPng};
  if (bytes.size() < kSignature + kChunkFrame + 13 || bytes.substr(12, 4) != "IHDR")
    throw corrupt_image(where, "PNG", "no IHDR chunk");
  header.size = checked_size(big_endian(bytes, 16, 4), big_endian(bytes, 20, 4), where);
  header.is_deep_grey = bytes[24] == 16 && bytes[25] == 0;  // bits per sample, colour type
  for (size_t offset = kSignature; offset + kChunkFrame <= bytes.size();) {
    const size_t length = big_endian(bytes, offset, 4);
    if (length > bytes.size() - offset - kChunkFrame) break;
    const std::string_view type = bytes.substr(offset + 4, 4),
                           content = bytes.substr(offset + 8, length);
    if (type == "eXIf") note_orientation(content, header);
    if (type == "acTL" && length >= 4 && big_endian(content, 0, 4) > 1) {
      refuse(where, "the image is animated",
             fmt::format("APNG with {} frames", big_endian(content, 0, 4)));
    }
    if (type == "IEND") break;
    offset += kChunkFrame + length;
  }
  return header;
}

bool is_frame_header(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

// @param content  of a start-of-frame segment: precision, height, width, number of components
void read_jpeg_frame(std::string_view content, ImageHeader& header, const std::string& where) {
  if (content.size() < 6) throw corrupt_image(where, "JPEG", "the frame header is too short");
  const int num_bits = static_cast<unsigned char>(content[0]);
  if (num_bits != 8)
    refuse(where, "the image has more than 8 bits per channel",
           fmt::format("a JPEG with {} bits", num_bits));
  header.size = checked_size(big_endian(content, 3, 2), big_endian(content, 1, 2), where);
  const int num_components = static_cast<unsigned char>(content[5]);
  header.is_cmyk = num_components == 4;
  if (num_components != 1 && num_components != 3 && num_components != 4) {
    refuse(where, "the image is neither grey nor RGB nor CMYK",
           fmt::format("a JPEG with {} components", num_components));
  }
}

// Walks the markers up to the first scan.
ImageHeader jpeg_header(std::string_view bytes, const std::string& where) {
  ImageHeader header{.format = ImageFormat::kJpeg};
  bool seen_exif = false;
  size_t offset = 2;
  while (offset + 4 <= bytes.size()) {
    const int marker = static_cast<unsigned char>(bytes[offset + 1]);
    if (static_cast<unsigned char>(bytes[offset]) != 0xFF) {
      ++offset;  // stray bytes between segments: the decoder skips them too
      continue;
    }
    if (marker == 0xFF || marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {
      offset += marker == 0xFF ? 1 : 2;
      continue;
    }
    if (marker == 0xDA || marker == 0xD9) break;
    const size_t length = big_endian(bytes, offset + 2, 2);
    if (length < 2 || length > bytes.size() - offset - 2) break;
    const std::string_view content = bytes.substr(offset + 4, length - 2);
    if (is_frame_header(marker) && header.size.width_px == 0)
      read_jpeg_frame(content, header, where);
    if (marker == 0xE1 && !seen_exif && content.substr(0, 6) == std::string_view("Exif\0\0", 6)) {
      seen_exif = true;
      note_orientation(content, header);
    }
    offset += 2 + length;
  }
  if (header.size.width_px == 0) throw corrupt_image(where, "JPEG", "no frame header");
  return header;
}

ImageHeader webp_header(std::string_view bytes, const std::string& where) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status =
      WebPGetFeatures(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &features);
  if (status != VP8_STATUS_OK)
    throw corrupt_image(where, "WebP", fmt::format("status {}", static_cast<int>(status)));
  if (features.has_animation) refuse(where, "the image is animated", "animated WebP");
  ImageHeader header{.format = ImageFormat::kWebp,
                     .size = checked_size(features.width, features.height, where),
                     .has_alpha = features.has_alpha != 0};
  for (size_t offset = 12; offset + 8 <= bytes.size();) {
    const size_t length = little_endian32(bytes, offset + 4);
    if (length > bytes.size() - offset - 8) break;
    if (bytes.substr(offset, 4) == "EXIF")
      note_orientation(bytes.substr(offset + 8, length), header);
    offset += 8 + length + length % 2;
  }
  return header;
}

/// "" for what is not an image.
std::string describe_unknown_format(std::string_view bytes) {
  if (bytes.substr(0, 4) == "GIF8") return "a GIF";
  if (bytes.substr(0, 2) == "BM") return "a BMP";
  if (bytes.substr(0, 4) == std::string_view("II*\0", 4) ||
      bytes.substr(0, 4) == std::string_view("MM\0*", 4))
    return "a TIFF";
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp") return "an HEIF, AVIF or video file";
  if (bytes.substr(0, 7) == "version") return "a Git LFS pointer (run `git lfs pull`)";
  // Text has no zero bytes; an unknown image would have some.
  if (bytes.starts_with("%PDF") || bytes.substr(0, 512).find('\0') == bytes.npos) return "";
  return fmt::format("{} bytes that start with none of these signatures", bytes.size());
}

}  // namespace

UserError corrupt_image(const std::string& where, const char* format, const std::string& reason) {
  return data_error({.error = "the image file is corrupt or truncated",
                     .where = where,
                     .what = fmt::format("{}: {}", format, reason),
                     .fix = "download the file again, or leave it out"});
}

ImageHeader read_image_header(std::string_view bytes, const std::string& where) {
  if (bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n") return png_header(bytes, where);
  if (bytes.substr(0, 3) == "\xff\xd8\xff") return jpeg_header(bytes, where);
  if (bytes.substr(0, 4) == "RIFF" && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP")
    return webp_header(bytes, where);
  const std::string error = "the image is not a JPEG, PNG or WebP file";
  if (bytes.empty())
    refuse(where, error, "an empty file", "download the file again, or leave it out");
  if (bytes.size() >= 8 && bytes.substr(4, 4) == "ftyp")  // HEIC, AVIF: Pillow needs a plug-in
    refuse(where, error, describe_unknown_format(bytes),
           "convert it: heif-convert IN OUT.png (package libheif-examples), or pip install "
           "pillow-heif and open it with Pillow");
  const std::string format = describe_unknown_format(bytes);
  if (format.empty())
    refuse(where, "this is not an image", bytes.starts_with("%PDF") ? "a PDF" : "another file",
           "give JPEG, PNG or WebP files");
  refuse(where, error, format);
}

}  // namespace rematch::vision
