#include "model/checkpoint/image_area.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "support/paths.h"

namespace rematch {
namespace {

Json with_area(const std::string& text, const std::string& name = "preprocessor_config.json") {
  return parse_json(processor_with_area(text, {100, 200}, name), name);
}

}  // namespace

TEST(ImageArea, IsSetInEveryFieldOfAFile) {
  const Json newer =
      with_area(R"({"size": {"shortest_edge": 1, "longest_edge": 2}, "patch_size": 16})");
  EXPECT_EQ(newer["size"], Json({{"shortest_edge", 100}, {"longest_edge", 200}}));
  EXPECT_EQ(newer["patch_size"], 16);
  EXPECT_FALSE(newer.contains("min_pixels"));
  const Json older = with_area(
      R"({"min_pixels": 3, "max_pixels": 4, "size": {"min_pixels": 3, "max_pixels": 4}})");
  EXPECT_EQ(older["min_pixels"], 100);
  EXPECT_EQ(older["max_pixels"], 200);
  EXPECT_EQ(older["size"]["min_pixels"], 100);
  EXPECT_EQ(older["size"]["longest_edge"], 200);
  EXPECT_EQ(with_area("{}")["size"]["shortest_edge"], 100);
  const Json nested = with_area(R"({"image_processor": {"size": {}}, "video_processor": {}})",
                                "processor_config.json");
  EXPECT_EQ(nested["image_processor"]["size"]["longest_edge"], 200);
  EXPECT_TRUE(nested["video_processor"].empty());
}

TEST(ImageArea, DoesNotChangeAFileThatAlreadyHasIt) {
  for (const std::string text :
       {R"({"size":{"shortest_edge":100,"longest_edge":200}})",
        R"({"min_pixels":100,"max_pixels":200,"size":{"longest_edge":5}})"})
    EXPECT_EQ(processor_with_area(text, {100, 200}, "preprocessor_config.json"), text);
  const std::string other = R"({"processor_class":"x"})";
  EXPECT_EQ(processor_with_area(other, {100, 200}, "processor_config.json"), other);
}

TEST(ImageArea, IsWrittenWithTheOtherSettings) {
  const test::TempDir dir;
  dir.write("base/preprocessor_config.json",
            R"({"size": {"shortest_edge": 1, "longest_edge": 2}})");
  std::filesystem::create_directory(dir.file("out"));
  write_image_area(dir.file("base"), dir.file("out"), {1, 2});
  EXPECT_EQ(read_file(dir.file("out/preprocessor_config.json")),
            read_file(dir.file("base/preprocessor_config.json")));
  write_image_area(dir.file("base"), dir.file("out"), {1, 9});
  EXPECT_TRUE(has_image_processor(dir.file("out")));
  std::filesystem::create_directory(dir.file("merged"));
  copy_image_area(dir.file("out"), dir.file("merged"));
  EXPECT_EQ(read_json_file(dir.file("merged/preprocessor_config.json"))["size"]["longest_edge"], 9);
}

}  // namespace rematch
