#include "learn/data/doubts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/paths.h"

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
  return content_warnings("d.jsonl", samples);
}

}  // namespace

TEST(ContentWarnings, CountsBoxesAndPolygonsWithoutAreaInOneText) {
  const std::vector<std::string> texts =
      warnings_of({scene(0, 640, 427, {box(1, 2, 1, 900), box(1, 2, 3, 4)}),
                   scene(6, 640, 427, {poly({0, 0, 5, 5, 9, 9}), poly({0, 0, 5, 5, 9, 8})}),
                   scene(7, 640, 427, {poly({4, 4, 4, 4, 4, 4})})});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("d.jsonl: 3 boxes and polygons without area"), std::string::npos)
      << texts[0];
}

TEST(ContentWarnings, SuspectsPixelsWhenNoCoordinateExceedsItsSide) {
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i) samples.push_back(scene(i, 640, 427, {box(10, 20, 500, 400)}));
  const std::vector<std::string> texts = warnings_of(samples);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("LOOK LIKE PIXELS"), std::string::npos);
  EXPECT_NE(texts[0].find("`rematch data check d.jsonl --fix OUT --unit pixels` converts them"),
            std::string::npos)
      << texts[0];
  samples.push_back(scene(20, 640, 427, {box(10, 20, 500, 428)}));
  EXPECT_TRUE(warnings_of(samples).empty()) << "one bin beyond a side clears the set";
}

TEST(ContentWarnings, SuspectsPixelsInEightScenesOfACommonSize) {
  std::vector<Sample> samples;
  for (int i = 0; i < 7; ++i) samples.push_back(scene(i, 640, 480, {box(100, 100, 500, 400)}));
  EXPECT_TRUE(warnings_of(samples).empty());
  samples.push_back(scene(7, 640, 480, {box(100, 100, 500, 400)}));
  EXPECT_EQ(warnings_of(samples).size(), 1u);
}

TEST(ContentWarnings, FewOrLargeImagesProveNothing) {
  EXPECT_TRUE(
      warnings_of({scene(0, 640, 427, {box(1, 2, 3, 4)}), scene(1, 640, 427, {box(1, 2, 3, 4)})})
          .empty());
  std::vector<Sample> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(scene(i, 1920, 1080, {box(1, 2, 999, 998)}));
  for (int i = 0; i < 100; ++i) samples.push_back(scene(i, 64, 64, {}));
  EXPECT_TRUE(warnings_of(samples).empty());
}

TEST(ContentWarnings, AnImageIsOneUnderAllItsNames) {
  const test::TempDir dir;
  const std::string path = dir.write("a.png", "");
  std::filesystem::create_symlink("a.png", dir.file("link.png"));
  for (const std::string& other :
       {dir.path() + "/./a.png", dir.file("link.png"), dir.file("gone.png")}) {
    std::vector<Sample> samples;
    for (const std::string& image : {path, other}) {
      const int x = static_cast<int>(samples.size());
      samples.push_back(scene(x, 2000, 2000, {box(x, 2, x + 5, 900)}));
      samples.back().image_paths = {image};
    }
    EXPECT_EQ(find_split_images(samples).num_images, other.ends_with("gone.png") ? 0 : 1) << other;
  }
}

TEST(ContentWarnings, RecordsOfOneImageThatLackEachOthersObjectsAreCounted) {
  const auto record = [](int64_t id, const char* image, const char* prompt, int x) {
    Sample sample = scene(id, 2000, 2000, {box(x, 2, x + 5, 900)});
    sample.image_paths = {image};
    sample.prompt = prompt;
    return sample;
  };
  EXPECT_TRUE(warnings_of({record(0, "a.png", "", 1), record(1, "a.png", "", 1),
                           record(2, "a.png", "Find dogs.", 7), record(3, "b.png", "", 7)})
                  .empty())
      << "the same objects again, another question, another image";
  const std::vector<std::string> texts = warnings_of(
      {record(0, "a.png", "", 1), record(1, "b.png", "", 1), record(2, "a.png", "", 7)});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("d.jsonl: 1 image is in 2 records with different objects"),
            std::string::npos)
      << texts[0];
  EXPECT_NE(texts[0].find("`rematch data check d.jsonl --fix OUT` joins them"), std::string::npos);
}

}  // namespace rematch
