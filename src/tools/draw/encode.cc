#include "tools/draw/encode.h"

#include <png.h>

#include <cstdio>  // jpeglib.h needs it
// After <cstdio>.
#include <jpeglib.h>

#include <cstdlib>

#include "base/error.h"

namespace rematch {

std::string encode_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width_px);
  header.height = static_cast<png_uint_32>(image.height_px);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string bytes(size, '\0');
  const int written =
      png_image_write_to_memory(&header, bytes.data(), &size, 0, image.rgb.data(), 0, nullptr);
  REMATCH_CHECK(written != 0, header.message);
  bytes.resize(size);
  return bytes;
}

std::string encode_jpeg(const Image& image, int quality) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  // An RGB image in memory fails to encode only for lack of memory.
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &buffer, &size);
  encoder.image_width = static_cast<JDIMENSION>(image.width_px);
  encoder.image_height = static_cast<JDIMENSION>(image.height_px);
  encoder.input_components = 3;
  encoder.in_color_space = JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, quality, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(image.width_px) * 3);
  while (encoder.next_scanline < encoder.image_height) {
    const auto* from = image.rgb.data() + static_cast<size_t>(encoder.next_scanline) * row.size();
    row.assign(from, from + row.size());
    JSAMPROW rows[1] = {row.data()};
    jpeg_write_scanlines(&encoder, rows, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string bytes(reinterpret_cast<const char*>(buffer), size);
  std::free(buffer);  // libjpeg allocates it with malloc
  return bytes;
}

// Base64 of a text. Only TLS libraries have it; it takes ten lines.
std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

}  // namespace rematch
