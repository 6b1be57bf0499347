#include <gtest/gtest.h>

#include "draw/encode.h"
#include "draw/panel.h"
#include "vision/image.h"

namespace rematch {
namespace {

Rgb pixel(const Image& image, int x, int y) {
  const size_t at = (static_cast<size_t>(y) * static_cast<size_t>(image.width_px) + static_cast<size_t>(x)) * 3;
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

}  // namespace

TEST(Draw, PngAndJpegAreReadBack) {
  Canvas canvas(40, 30, kWhite);
  canvas.fill(10, 5, 20, 10, {255, 0, 0});
  const Image png = decode_image(encode_png(canvas.image()), "png");
  EXPECT_EQ(png.rgb, canvas.image().rgb);
  const Image jpeg = decode_image(encode_jpeg(canvas.image(), 95), "jpeg");
  EXPECT_EQ(jpeg.width_px, 40);
  EXPECT_NEAR(pixel(jpeg, 20, 10).r, 255, 12);
  EXPECT_NEAR(pixel(jpeg, 20, 10).g, 0, 24);
}

TEST(Draw, Base64IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Draw, WhatLiesOutsideIsClipped) {
  Canvas canvas(10, 10, kWhite);
  canvas.outline({{-50, -50}, {60, -50}, {60, 60}, {-50, 60}}, kInk, 3);
  canvas.text(-4, 6, "W\xC3\xA4", kInk, 2);
  canvas.paste(Canvas(30, 3, kInk).image(), -10, 8);
  EXPECT_EQ(pixel(canvas.image(), 9, 9), kInk);
  EXPECT_EQ(pixel(canvas.image(), 9, 0), kWhite);
}

TEST(Draw, LettersDifferAndOtherScriptsAreABox) {
  const auto drawn = [](const char* text) {
    Canvas canvas(8, 8, kWhite);
    canvas.text(0, 0, text, kInk);
    return canvas.image().rgb;
  };
  EXPECT_NE(drawn("O"), drawn("Q"));
  EXPECT_EQ(drawn("\xE7\x8C\xAB"), drawn("\xC3\xA9"));
  EXPECT_NE(drawn("\xC3\xA9"), drawn("e"));
  EXPECT_EQ(text_width("a\xC3\xA9", 2), text_width("ab", 2));
}

TEST(Draw, BoxesStandWhereTheirBinsSay) {
  const Canvas panel =
      scene_panel(Canvas(100, 50, kWhite).image(), {{{GeometryKind::kBbox2d, {500, 200, 900, 800}}, "", kTruthColor}}, 200);
  EXPECT_EQ(panel.width_px(), 200);
  EXPECT_EQ(panel.height_px(), 100);
  EXPECT_EQ(pixel(panel.image(), 100, 50), kTruthColor);
  EXPECT_EQ(pixel(panel.image(), 140, 20), kTruthColor);
  EXPECT_EQ(pixel(panel.image(), 140, 50), kWhite);
}

TEST(Draw, ShrinkingTakesMeans) {
  Canvas canvas(2, 2, kWhite);
  canvas.fill(0, 0, 1, 2, {0, 0, 0});
  EXPECT_EQ(resized(canvas.image(), 1, 1).rgb, (std::vector<uint8_t>{128, 128, 128}));
  EXPECT_EQ(resized(canvas.image(), 4, 4).width_px, 4);
}

TEST(Draw, ASheetHoldsAllPanels) {
  std::vector<std::pair<std::string, Canvas>> panels;
  for (int i = 0; i < 5; ++i) panels.emplace_back("a caption that is much longer than the panel is wide", Canvas(50, 20 + i, kInk));
  const Canvas sheet = sheet_of(panels, 3);
  EXPECT_EQ(sheet.width_px(), 10 + 3 * 60);
  EXPECT_GT(sheet.height_px(), 2 * 20);
}

}  // namespace rematch
