#include <gtest/gtest.h>

#include "model/vision/image_formats.h"
#include "model/vision/upright.h"
#include "support/paths.h"
#include "tools/draw/encode.h"

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

// A PNG of 3 x 2 pixels whose green channel counts them, row by row.
std::string numbered_png(int orientation) {
  Image image{.width_px = 3, .height_px = 2, .rgb = {}};
  for (uint8_t i = 0; i < 6; ++i) image.rgb.insert(image.rgb.end(), {0, i, 0});
  std::string png = encode_png(image);
  const std::string exif = tiff(true, 0x0112, 3, orientation);
  const std::string size(1, static_cast<char>(exif.size()));
  constexpr size_t kAfterHeader = 33;  // signature and IHDR
  return png.insert(kAfterHeader,
                    std::string(3, '\0') + size + "eXIf" + exif + std::string(4, '\0'));
}

TEST(LoadImage, TurnsThePictureAsViewersDo) {
  const test::TempDir directory;
  // Pillow's ImageOps.exif_transpose of the same picture
  const std::vector<std::vector<int>> expected = {
      {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
      {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string path = directory.write("a.png", numbered_png(orientation));
    const Image image = load_image(path);
    std::vector<int> green;
    for (size_t i = 1; i < image.rgb.size(); i += 3) green.push_back(image.rgb[i]);
    EXPECT_EQ(green, expected[static_cast<size_t>(orientation - 1)]) << orientation;
    const StoredImage stored = read_stored_image(path);
    EXPECT_EQ(stored.orientation, orientation);
    EXPECT_EQ(stored.size.width_px, 3);
    EXPECT_EQ(stored.upright_size().width_px, image.width_px);
    EXPECT_EQ(stored.upright_size().height_px, image.height_px);
    const ImageFacts facts = read_image_facts(path);
    EXPECT_EQ(facts.size, image.size());
    EXPECT_EQ(facts.stored_size(), stored.size);
    EXPECT_EQ(facts.is_turned(), orientation > 1);
    EXPECT_EQ(facts.is_unturned(stored.size), orientation >= 5);
    EXPECT_EQ(facts.hides_turn(), orientation >= 2 && orientation <= 4);
  }
}

}  // namespace rematch::vision
