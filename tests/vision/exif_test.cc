#include <gtest/gtest.h>

#include "vision/image_formats.h"

namespace rematch::vision {
namespace {

// A TIFF block with one entry. @param type  3 SHORT, 4 LONG
std::string tiff(bool big_endian, int tag, int type, int value) {
  const auto number = [&](int n, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i)
      bytes += static_cast<char>(n >> 8 * (big_endian ? size - 1 - i : i));
    return bytes;
  };
  const std::string content = type == 3 ? number(value, 2) + number(0, 2) : number(value, 4);
  const std::string entry = number(tag, 2) + number(type, 2) + number(1, 4) + content;
  return std::string(big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(1, 2) +
         entry + number(0, 4);
}

}  // namespace

TEST(ExifOrientation, IsReadInBothByteOrdersWithAndWithoutTheMark) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(exif_orientation(tiff(true, 0x0112, 3, orientation)), orientation);
    EXPECT_EQ(exif_orientation(tiff(false, 0x0112, 3, orientation)), orientation);
    EXPECT_EQ(exif_orientation(tiff(false, 0x0112, 4, orientation)), orientation);
    EXPECT_EQ(exif_orientation(std::string("Exif\0\0", 6) + tiff(true, 0x0112, 3, orientation)),
              orientation);
  }
}

TEST(ExifOrientation, IsUprightWhenAbsentOrDamaged) {
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation("II"), 1);
  EXPECT_EQ(exif_orientation(tiff(true, 0x0110, 3, 6)), 1);
  EXPECT_EQ(exif_orientation(tiff(true, 0x0112, 3, 77)), 1);
  EXPECT_EQ(exif_orientation(tiff(true, 0x0112, 2, 6)), 1);
  const std::string whole = tiff(false, 0x0112, 3, 6);
  for (size_t size = 0; size < 18; ++size)
    EXPECT_EQ(exif_orientation(whole.substr(0, size)), 1) << size;
}

}  // namespace rematch::vision
