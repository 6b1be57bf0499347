#include <gtest/gtest.h>

#include <future>

#include "model/vision/image.h"
#include "tools/draw/encode.h"
#include "tools/draw/panel.h"

namespace rematch {
namespace {

Rgb pixel(const Image& image, int x, int y) {
  const size_t at =
      (static_cast<size_t>(y) * static_cast<size_t>(image.width_px) + static_cast<size_t>(x)) * 3;
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

bool has_color(const Image& image, const Rgb& color) {
  for (int y = 0; y < image.height_px; ++y)
    for (int x = 0; x < image.width_px; ++x)
      if (pixel(image, x, y) == color) return true;
  return false;
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

TEST(Draw, AScoreOfNearlyZeroIsNotWritten) {
  const std::vector<double> scores = {0.997, 0.0999, 0.0421, 0.005, 0.00421, 0};
  const std::vector<std::string> expected = {"cat 1.00", "cat 0.10", "cat 0.04",
                                             "cat 0.01", "cat",      "cat"};
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(scored_label("cat", scores, i), expected[i]);
  EXPECT_EQ(scored_label("cat", {}, 0), "cat");
}

TEST(Draw, WhatLiesOutsideIsClipped) {
  Canvas canvas(10, 10, kWhite);
  canvas.outline({{-50, -50}, {60, -50}, {60, 60}, {-50, 60}}, kInk, 3);
  canvas.text(-4, 6, "W\xC3\xA4", kInk, 20);
  canvas.paste(Canvas(30, 3, kInk).image(), -10, 8);
  EXPECT_EQ(pixel(canvas.image(), 9, 9), kInk);
  EXPECT_EQ(pixel(canvas.image(), 9, 0), kWhite);
}

TEST(Draw, LettersDifferAndCharactersWithoutAGlyphAreABox) {
  const auto drawn = [](const char* text) {
    Canvas canvas(24, 24, kWhite);
    canvas.text(0, 0, text, kInk, 16);
    return canvas.image().rgb;
  };
  EXPECT_NE(drawn("O"), drawn("Q"));
  EXPECT_NE(drawn("é"), drawn("e"));
  EXPECT_NE(drawn("Ж"), drawn("Ω"));
  EXPECT_EQ(drawn("猫"), drawn("犬"));
  EXPECT_NE(drawn("猫"), drawn(" "));
}

TEST(Draw, TextStaysInsideItsSize) {
  for (const int size_px : {9, 13, 20}) {
    const std::string text = "Éčþgj|";
    const int width = text_width(text, size_px), height = text_height(size_px);
    Canvas canvas(width + 20, height + 20, kWhite);
    canvas.text(10, 10, text, kInk, size_px);
    Canvas inside(width + 20, height + 20, kWhite);
    inside.paste(canvas.image(), 0, 0);
    inside.fill(9, 10, width + 2, height, kWhite);
    EXPECT_EQ(inside.image().rgb, Canvas(width + 20, height + 20, kWhite).image().rgb) << size_px;
    EXPECT_NE(canvas.image().rgb, inside.image().rgb);
  }
}

TEST(Draw, ThreadsDrawTextAtTheSameTime) {
  const auto draw = [] {
    Canvas canvas(400, 40, kWhite);
    for (int size_px = 8; size_px < 30; ++size_px) canvas.text(0, 0, "labels", kInk, size_px);
    return canvas.image().rgb;
  };
  const std::vector<uint8_t> expected = draw();
  std::vector<std::future<std::vector<uint8_t>>> others;
  for (int i = 0; i < 4; ++i) others.push_back(std::async(std::launch::async, draw));
  for (auto& other : others) EXPECT_EQ(other.get(), expected);
}

TEST(Draw, LabelsAreInsideTheImageAndApart) {
  const DrawnObject object{
      {GeometryKind::kBbox2d, {900, 0, 999, 100}}, "a long label", kPredictionColor};
  const auto label_pixels = [&](size_t count) {
    const Canvas panel =
        scene_panel(Canvas(300, 200, kInk).image(), std::vector<DrawnObject>(count, object), 300);
    int pixels = 0;
    for (int y = 0; y < panel.height_px(); ++y) {
      for (int x = 0; x < panel.width_px(); ++x)
        pixels += pixel(panel.image(), x, y) == kPredictionColor;
    }
    return pixels;
  };
  const int area = text_width("a long label", 13) * text_height(13);
  EXPECT_GT(label_pixels(1), area / 2);
  EXPECT_GT(label_pixels(2), label_pixels(1) + area / 2);
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

TEST(Draw, ImagesAreScaledByTheirLongerSide) {
  const Image small = scale_to(Canvas(400, 100, kTruthColor).image(), 100);
  EXPECT_EQ(small.width_px, 100);
  EXPECT_EQ(small.height_px, 25);
  EXPECT_EQ(pixel(small, 50, 12), kTruthColor);
  EXPECT_EQ(scale_to(Canvas(400, 1, kWhite).image(), 10).height_px, 1);
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

TEST(Draw, ALegendStandsAboveThePanelsAsFarAsItFits) {
  const std::vector<std::pair<std::string, Canvas>> panels{{"one", Canvas(120, 40, kInk)}};
  const Canvas plain = sheet_of(panels, 1);
  const Canvas sheet =
      sheet_of(panels, 1, {{kTruthColor, "truth"}, {kPredictionColor, std::string(60, 'x')}});
  EXPECT_EQ(sheet.width_px(), plain.width_px());
  EXPECT_GT(sheet.height_px(), plain.height_px() + 10);
  EXPECT_TRUE(has_color(sheet.image(), kTruthColor));
  EXPECT_FALSE(has_color(sheet.image(), kPredictionColor));
}

TEST(ClassColors, AreOfAClassAndDifferFromThoseOfOthers) {
  ClassColors colors;
  const Rgb first = colors.of("cat"), second = colors.of("dog");
  EXPECT_EQ(first, kPredictionColor);
  EXPECT_FALSE(first == second);
  EXPECT_EQ(colors.of("cat"), first);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(colors.of(std::to_string(i)) == first) << i;
  EXPECT_EQ(colors.of("the thirteenth"), first);
}

}  // namespace rematch
