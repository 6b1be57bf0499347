#include "model/vision/image_formats.h"

namespace rematch::vision {
namespace {

// Bounds-checked integers of a TIFF block; an out-of-range read returns 0, which no valid TIFF has
// there.
struct TiffReader {
  std::string_view bytes;
  bool is_big_endian = false;

  uint32_t number(size_t offset, size_t num_bytes) const {
    if (offset > bytes.size() || num_bytes > bytes.size() - offset) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < num_bytes; ++i) {
      const auto byte =
          static_cast<unsigned char>(bytes[offset + (is_big_endian ? i : num_bytes - 1 - i)]);
      value = value << 8 | byte;
    }
    return value;
  }
};

}  // namespace

int exif_orientation(std::string_view exif) {
  constexpr std::string_view kMark("Exif\0\0", 6);
  constexpr uint32_t kOrientationTag = 0x0112, kShort = 3, kLong = 4;
  if (exif.substr(0, kMark.size()) == kMark) exif.remove_prefix(kMark.size());
  if (exif.substr(0, 2) != "II" && exif.substr(0, 2) != "MM") return 1;
  const TiffReader reader{.bytes = exif, .is_big_endian = exif[0] == 'M'};
  const size_t directory = reader.number(4, 4);
  const uint32_t num_entries = reader.number(directory, 2);
  for (uint32_t i = 0; i < num_entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry >= exif.size()) break;
    if (reader.number(entry, 2) != kOrientationTag) continue;
    const uint32_t type = reader.number(entry + 2, 2);
    const uint32_t value = type == kShort  ? reader.number(entry + 8, 2)
                           : type == kLong ? reader.number(entry + 8, 4)
                                           : 1;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace rematch::vision
