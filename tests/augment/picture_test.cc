// Pictures and geometries change alike.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "learn/augment/augmentation.h"
#include "tools/draw/panel.h"

namespace rematch {
namespace {

Image noise(int width, int height, uint32_t state = 1) {
  Image image{.width_px = width, .height_px = height, .rgb = {}};
  for (int i = 0; i < width * height * 3; ++i) {
    state = state * 1664525u + 1013904223u;
    image.rgb.push_back(static_cast<uint8_t>(state >> 24));
  }
  return image;
}

// A white picture with a black box.
Image with_box(const Geometry& box, int width, int height) {
  Canvas canvas(width, height, kWhite);
  const std::vector<Point> corners = vertices_px(box, width, height);
  const int x = static_cast<int>(std::lround(corners[0].x)),
            y = static_cast<int>(std::lround(corners[0].y));
  canvas.fill(x, y, static_cast<int>(std::lround(corners[2].x)) - x,
              static_cast<int>(std::lround(corners[2].y)) - y, {0, 0, 0});
  return canvas.image();
}

// Bounding box of the dark pixels: left, top, right, bottom (excluded).
std::array<double, 4> dark_box(const Image& image) {
  std::array<double, 4> box{1e9, 1e9, -1, -1};
  for (int y = 0; y < image.height_px; ++y) {
    for (int x = 0; x < image.width_px; ++x) {
      if (image.rgb[static_cast<size_t>((y * image.width_px + x) * 3)] > 127) continue;
      box = {std::min(box[0], double(x)), std::min(box[1], double(y)),
             std::max(box[2], double(x + 1)), std::max(box[3], double(y + 1))};
    }
  }
  return box;
}

}  // namespace

RC_GTEST_PROP(Picture, FlippedTwiceIsTheIdentity, ()) {
  const Image before = noise(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 40));
  Image image = before;
  const ImageChange flip{.orientation = ImageChange::kMirrored};
  kHflip.paint(flip, image);
  for (int x = 0; x < before.width_px; ++x)
    RC_ASSERT(image.rgb[static_cast<size_t>(x * 3)] ==
              before.rgb[static_cast<size_t>((before.width_px - 1 - x) * 3)]);
  kHflip.paint(flip, image);
  RC_ASSERT(image.rgb == before.rgb);
}

RC_GTEST_PROP(Picture, UpsideDownTwiceIsTheIdentity, ()) {
  const Image before = noise(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 40));
  Image image = before;
  const ImageChange flip{.orientation = ImageChange::kUpsideDown};
  kVflip.paint(flip, image);
  const auto row_bytes = static_cast<size_t>(before.width_px) * 3;
  RC_ASSERT(std::equal(before.rgb.begin(), before.rgb.begin() + static_cast<long>(row_bytes),
                       image.rgb.end() - static_cast<long>(row_bytes)));
  kVflip.paint(flip, image);
  RC_ASSERT(image.rgb == before.rgb);
}

TEST(Picture, AQuarterTurnIsClockwise) {
  // 3 x 2: the levels of red are the places, row by row.
  Image image{.width_px = 3, .height_px = 2, .rgb = {}};
  for (const uint8_t red : {0, 1, 2, 3, 4, 5}) image.rgb.insert(image.rgb.end(), {red, 7, 9});
  const Image before = image;
  kRot90.paint({.orientation = ImageChange::kQuarterTurn}, image);
  EXPECT_EQ(image.size(), (ImageSize{.width_px = 2, .height_px = 3}));
  std::vector<uint8_t> reds;
  for (size_t i = 0; i < image.rgb.size(); i += 3) reds.push_back(image.rgb[i]);
  EXPECT_EQ(reds, (std::vector<uint8_t>{3, 0, 4, 1, 5, 2}));
  kRot90.paint({.orientation = 3 * ImageChange::kQuarterTurn}, image);
  EXPECT_EQ(image.rgb, before.rgb);
}

RC_GTEST_PROP(Picture, ObjectsLieWhereThePictureShowsThem, ()) {
  constexpr int kWidth = 400, kHeight = 300;
  const int x = *rc::gen::inRange(0, 700), y = *rc::gen::inRange(0, 700);
  const Geometry box{GeometryKind::kBbox2d,
                     {x, y, x + *rc::gen::inRange(60, 299), y + *rc::gen::inRange(60, 299)}};
  const Sample sample{.sample_id = *rc::gen::inRange(0, 10000),
                      .image_paths = {},
                      .width_px = kWidth,
                      .height_px = kHeight,
                      .objects = {{"box", box}}};
  const Sample shown =
      augment_sample(sample, {.hflip = 0.5, .crop = 0.3, .vflip = 0.5, .rot90 = 0.75}, 5, 0);
  Image image = with_box(box, kWidth, kHeight);
  change_image(image, shown.change);
  RC_ASSERT(image.width_px == shown.width_px && image.height_px == shown.height_px);
  RC_ASSERT(image.width_px == (shown.change.swaps_sides() ? kHeight : kWidth));
  const std::array<double, 4> dark = dark_box(image);
  const std::vector<int>& bins = shown.objects.at(0).geometry.bins;
  // Half a pixel of drawing becomes up to two in a crop of 30 percent.
  for (size_t i = 0; i < 4; ++i) {
    const double px = bins[i] * (i % 2 == 0 ? image.width_px : image.height_px) / 999.0;
    RC_ASSERT(std::abs(px - dark[i]) <= 2.5);
  }
}

RC_GTEST_PROP(Picture, ChangesOtherThanTurnsKeepTheSize, ()) {
  const int width = *rc::gen::inRange(2, 90), height = *rc::gen::inRange(2, 90);
  const Sample sample{
      .sample_id = *rc::gen::inRange(0, 1000), .width_px = width, .height_px = height};
  Image image = noise(width, height);
  const AugmentSettings all{.hflip = 0.5, .crop = 0.1, .color = 0.9, .vflip = 0.5};
  change_image(image, augment_sample(sample, all, 1, 0).change);
  RC_ASSERT(image.width_px == width && image.height_px == height);
  RC_ASSERT(image.rgb.size() == static_cast<size_t>(width * height * 3));
}

TEST(Picture, ColorsFollowTheFactors) {
  const Image before{.width_px = 2, .height_px = 1, .rgb = {100, 50, 0, 200, 200, 200}};
  const auto painted = [&](std::array<int64_t, 3> color) {
    Image image = before;
    kColor.paint({.color = color}, image);
    return image.rgb;
  };
  EXPECT_EQ(painted({1000, 1000, 1000}), before.rgb);
  EXPECT_EQ(painted({1500, 1000, 1000}), (std::vector<uint8_t>{150, 75, 0, 255, 255, 255}));
  // Mean grey of 59 and 200 is 130: half way towards it.
  EXPECT_EQ(painted({1000, 500, 1000}), (std::vector<uint8_t>{115, 90, 65, 165, 165, 165}));
  EXPECT_EQ(painted({1000, 1000, 0}), (std::vector<uint8_t>{59, 59, 59, 200, 200, 200}));
}

}  // namespace rematch
