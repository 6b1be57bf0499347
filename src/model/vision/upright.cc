#include "model/vision/upright.h"

#include <algorithm>

#include "base/file.h"
#include "model/vision/image_formats.h"

namespace rematch {
namespace {

bool swaps_sides(int orientation) { return orientation >= 5; }

}  // namespace

// The orientation says at which edges of the picture the first row and column lie.
Image vision::make_upright(Image stored, int orientation) {
  if (orientation == 1) return stored;
  const bool swaps = swaps_sides(orientation);
  Image upright =
      black_image(StoredImage{.size = stored.size(), .orientation = orientation}.upright_size());
  const bool from_right = orientation == 2 || orientation == 3 || orientation >= 7;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  uint8_t* out = upright.rgb.data();
  for (int y = 0; y < upright.height_px; ++y) {
    for (int x = 0; x < upright.width_px; ++x) {
      const int column = swaps ? y : x, row = swaps ? x : y;
      const auto from_column =
          static_cast<size_t>(from_right ? stored.width_px - 1 - column : column);
      const auto from_row = static_cast<size_t>(from_bottom ? stored.height_px - 1 - row : row);
      const size_t pixel = from_row * static_cast<size_t>(stored.width_px) + from_column;
      out = std::copy_n(stored.rgb.data() + pixel * kNumChannels, kNumChannels, out);
    }
  }
  return upright;
}

ImageSize StoredImage::upright_size() const {
  if (!swaps_sides(orientation)) return size;
  return {.width_px = size.height_px, .height_px = size.width_px};
}

StoredImage read_stored_image(const std::string& path) {
  const MappedFile file(path);
  const vision::ImageHeader header = vision::read_image_header(file.bytes(), path);
  return {.size = header.size, .orientation = header.orientation};
}

}  // namespace rematch
