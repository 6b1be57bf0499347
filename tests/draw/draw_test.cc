#include <gtest/gtest.h>

#include <map>

#include "draw/encode.h"
#include "draw/font.h"
#include "draw/panel.h"
#include "vision/image.h"

namespace rematch {
namespace {

Rgb pixel(const Image& image, int x, int y) {
  const size_t at =
      (static_cast<size_t>(y) * static_cast<size_t>(image.width_px) + static_cast<size_t>(x)) * 3;
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
  EXPECT_EQ(drawn("猫"), drawn("犬"));
  EXPECT_NE(drawn("é"), drawn("猫"));
  EXPECT_EQ(text_width("aé", 2), text_width("ab", 2));
}

TEST(Draw, EveryLetterOfLatinOneAndExtendedAHasAShapeOfItsOwn) {
  std::map<std::vector<unsigned>, char32_t> shapes;
  const auto shape_of = [](char32_t code_point) {
    std::vector<unsigned> rows;
    for (int row = -kGlyphRise; row < kGlyphHeight; ++row)
      rows.push_back(glyph_row(code_point, row));
    return rows;
  };
  const std::vector<unsigned> hollow = shape_of(U'猫');
  for (char32_t code_point = U'!'; code_point <= 0x17F;
       code_point = code_point == U'~' ? 0xA1 : code_point + 1) {
    // the soft hyphen is a hyphen; Đ looks like Ð
    if (code_point == 0xAD || code_point == 0x110) continue;
    const std::vector<unsigned> shape = shape_of(code_point);
    for (const unsigned dots : shape) EXPECT_LT(dots, 1u << kGlyphWidth);
    EXPECT_NE(shape, hollow) << static_cast<uint32_t>(code_point);
    const auto [same, is_new] = shapes.emplace(shape, code_point);
    EXPECT_TRUE(is_new) << static_cast<uint32_t>(code_point) << " looks like "
                        << static_cast<uint32_t>(same->second);
  }
}

TEST(Draw, ALabelHasRoomForItsAccents) {
  EXPECT_EQ(text_rise("Katze", 2), 0);
  EXPECT_EQ(text_rise("café", 2), 2);
  EXPECT_EQ(text_rise("École", 2), 2 * kGlyphRise);
  const auto label_rows = [](const char* label) {
    const Canvas panel =
        scene_panel(Canvas(100, 100, kInk).image(),
                    {{{GeometryKind::kBbox2d, {500, 500, 900, 900}}, label, kTruthColor}}, 100);
    int rows = 0;
    for (int y = 0; y < 50; ++y) rows += pixel(panel.image(), 50, y) == kTruthColor;
    return rows;
  };
  EXPECT_EQ(label_rows("É"), label_rows("E") + kGlyphRise);
}

TEST(Draw, BoxesStandWhereTheirBinsSay) {
  const Canvas panel =
      scene_panel(Canvas(100, 50, kWhite).image(),
                  {{{GeometryKind::kBbox2d, {500, 200, 900, 800}}, "", kTruthColor}}, 200);
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
  for (int i = 0; i < 5; ++i)
    panels.emplace_back("a caption that is much longer than the panel is wide",
                        Canvas(50, 20 + i, kInk));
  const Canvas sheet = sheet_of(panels, 3);
  EXPECT_EQ(sheet.width_px(), 10 + 3 * 60);
  EXPECT_GT(sheet.height_px(), 2 * 20);
}

}  // namespace rematch
