#include <webp/decode.h>

#include <vector>

#include "model/vision/image_formats.h"

namespace rematch::vision {

Image decode_webp(std::string_view bytes, const ImageHeader& header, const std::string& where) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  Image image = black_image(header.size);
  std::vector<uint8_t> rgba(header.has_alpha ? image.rgb.size() / 3 * 4 : 0);
  const uint8_t* const decoded =
      header.has_alpha
          ? WebPDecodeRGBAInto(data, bytes.size(), rgba.data(), rgba.size(), image.width_px * 4)
          : WebPDecodeRGBInto(data, bytes.size(), image.rgb.data(), image.rgb.size(),
                              image.width_px * 3);
  if (decoded == nullptr) throw corrupt_image(where, "WebP", "the image data cannot be decoded");
  for (size_t pixel = 0; pixel < rgba.size() / 4; ++pixel) {
    for (size_t channel = 0; channel < 3; ++channel) {
      image.rgb[pixel * 3 + channel] =
          composite_on_white(rgba[pixel * 4 + channel], rgba[pixel * 4 + 3]);
    }
  }
  return image;
}

}  // namespace rematch::vision
