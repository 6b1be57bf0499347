// Foreign bytes as an image: a picture or a data error, never anything else. Start from
// tests/golden/vision_images.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "model/vision/image_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMaxPixels = 1 << 20;  // headers are cheap to write, pixels are slow to decode
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto header = rematch::vision::read_image_header(bytes, "fuzz");
    if (int64_t{header.size.width_px} * header.size.height_px > kMaxPixels) return 0;
    const rematch::Image image = rematch::decode_image(bytes, "fuzz");
    REMATCH_CHECK(image.size() == header.size, "size");
    REMATCH_CHECK(image.rgb.size() == static_cast<size_t>(image.width_px) *
                                          static_cast<size_t>(image.height_px) * 3,
                  "pixels");
  } catch (const rematch::UserError& error) {
    REMATCH_CHECK(error.kind() == rematch::ErrorKind::kData, error.what());
  }
  return 0;
}
