#include "learn/data/box_census.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

Sample scene(int64_t sample_id, int width_px, int height_px, std::vector<Geometry> geometries) {
  Sample sample{.sample_id = sample_id, .width_px = width_px, .height_px = height_px};
  for (Geometry& geometry : geometries)
    sample.objects.push_back({.desc = "a", .geometry = std::move(geometry)});
  return sample;
}

Geometry box(int x1, int y1, int x2, int y2) {
  return {.kind = GeometryKind::kBbox2d, .bins = {x1, y1, x2, y2}};
}
Geometry poly(std::vector<int> bins) {
  return {.kind = GeometryKind::kPoly, .bins = std::move(bins)};
}

std::vector<std::string> warnings_of(const std::vector<Sample>& samples) {
  BoxCensus census;
  for (const Sample& sample : samples) census.add(sample);
  return census.warnings("d.jsonl");
}

}  // namespace

TEST(BoxCensus, CountsBoxesAndPolygonsWithoutAreaInOneText) {
  const std::vector<std::string> texts =
      warnings_of({scene(0, 640, 427, {box(1, 2, 1, 900), box(1, 2, 3, 4)}),
                   scene(6, 640, 427, {poly({0, 0, 5, 5, 9, 9}), poly({0, 0, 5, 5, 9, 8})}),
                   scene(7, 640, 427, {poly({4, 4, 4, 4, 4, 4})})});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("d.jsonl: 1 box without width or height"), std::string::npos) << texts[0];
  EXPECT_NE(
      texts[0].find("2 polygons without area (line 1 object 1, line 7 object 1, line 8 object 1)"),
      std::string::npos)
      << texts[0];
}

TEST(BoxCensus, SuspectsPixelsWhenNoCoordinateExceedsItsSide) {
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i) samples.push_back(scene(i, 640, 427, {box(10, 20, 500, 400)}));
  const std::vector<std::string> texts = warnings_of(samples);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("LOOK LIKE PIXELS"), std::string::npos);
  EXPECT_NE(texts[0].find("line 1: largest x 500 and y 400 in an image of 640 x 427 px"),
            std::string::npos)
      << texts[0];
  EXPECT_NE(texts[0].find("`rematch data check d.jsonl --fix OUT --unit pixels` converts them"),
            std::string::npos)
      << texts[0];
  samples.push_back(scene(20, 640, 427, {box(10, 20, 500, 428)}));
  EXPECT_TRUE(warnings_of(samples).empty()) << "one bin beyond a side clears the set";
}

TEST(BoxCensus, SuspectsPixelsInEightScenesOfACommonSize) {
  std::vector<Sample> samples;
  for (int i = 0; i < 7; ++i) samples.push_back(scene(i, 640, 480, {box(100, 100, 500, 400)}));
  EXPECT_TRUE(warnings_of(samples).empty());
  samples.push_back(scene(7, 640, 480, {box(100, 100, 500, 400)}));
  EXPECT_EQ(warnings_of(samples).size(), 1u);
}

TEST(BoxCensus, FewOrLargeImagesProveNothing) {
  EXPECT_TRUE(
      warnings_of({scene(0, 640, 427, {box(1, 2, 3, 4)}), scene(1, 640, 427, {box(1, 2, 3, 4)})})
          .empty());
  std::vector<Sample> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(scene(i, 1920, 1080, {box(1, 2, 999, 998)}));
  for (int i = 0; i < 100; ++i) samples.push_back(scene(i, 64, 64, {}));
  EXPECT_TRUE(warnings_of(samples).empty());
}

}  // namespace rematch
