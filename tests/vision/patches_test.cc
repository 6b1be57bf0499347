#include "model/vision/patches.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vision/image_golden.h"

namespace rematch {
namespace {

// Every pixel differs from its neighbours, so that a wrong order shows.
Image numbered(int width, int height) {
  Image image{.width_px = width, .height_px = height, .rgb = {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c)
        image.rgb.push_back(static_cast<uint8_t>((y * 7 + x * 3 + c * 85) % 256));
    }
  }
  return image;
}

}  // namespace

TEST(Patchify, EqualsTransformersBitForBit) {
  test::expect_pixel_values_as_transformers(test::source_path("tests/golden/vision_images"));
}

TEST(Patchify, PutsPixelsWhereTheFormulaSays) {
  const PatchOptions options;
  const Image image = numbered(96, 64);
  const Patches patches = patchify(image, options, "x");
  ASSERT_EQ(patches.grid_thw, (GridThw{1, 4, 6}));
  ASSERT_EQ(patches.row_width, 1536);
  size_t row = 0;
  for (int block_y = 0; block_y < 2; ++block_y) {
    for (int block_x = 0; block_x < 3; ++block_x) {
      for (int merge_y = 0; merge_y < 2; ++merge_y) {
        for (int merge_x = 0; merge_x < 2; ++merge_x, ++row) {
          for (int column = 0; column < 1536; ++column) {
            const int channel = column / 512;  // 2 frames of 16 x 16
            const int y = (block_y * 2 + merge_y) * 16 + column % 256 / 16,
                      x = (block_x * 2 + merge_x) * 16 + column % 16;
            const float level = image.rgb[static_cast<size_t>((y * 96 + x) * 3 + channel)];
            ASSERT_EQ(patches.pixel_values[row * 1536 + static_cast<size_t>(column)],
                      (level - 127.5f) / 127.5f)
                << row << " " << column;
          }
        }
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(row), patches.num_rows());
}

TEST(Patchify, NamesTheNearestLegalSizeOfAnIllegalImage) {
  const UserError error =
      test::catch_user_error([] { patchify(numbered(96, 50), {}, "photo.png"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "photo.png");
  EXPECT_NE(error.problems()[0].what.find("96 x 50"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("96 x 64"), std::string::npos);
}

TEST(GridOf, CountsPatchesNotMergedOnes) { EXPECT_EQ(grid_of(96, 64, {}), (GridThw{1, 4, 6})); }

}  // namespace rematch
