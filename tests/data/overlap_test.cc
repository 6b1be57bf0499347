#include "learn/data/overlap.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/paths.h"

namespace rematch {
namespace {

class OverlapTest : public testing::Test {
 protected:
  // Records of one object each. @param rows  image and desc
  Dataset load(const std::string& name,
               const std::vector<std::pair<std::string, std::string>>& rows) {
    std::string lines;
    for (const auto& [image, desc] : rows)
      lines += R"({"images": [")" + image +
               R"("], "width": 10, "height": 10, "objects": [{"desc": ")" + desc +
               R"(", "bbox_2d": [1, 2, 3, 4]}]})" + "\n";
    return Dataset::load(directory_.write(name, lines), {.check_image_files = false});
  }
  std::string image(const std::string& name) { return directory_.write(name, name); }

  test::TempDir directory_;
};

}  // namespace

TEST_F(OverlapTest, SaysNothingOfSetsThatShareClassesOnly) {
  image("a.png"), image("b.png");
  EXPECT_TRUE(overlap_warnings(load("train.jsonl", {{"a.png", "cat"}}),
                               load("val.jsonl", {{"b.png", " Cat"}}))
                  .empty());
}

TEST_F(OverlapTest, NamesImagesThatAreTrainedOnUnderAnyName) {
  image("a.png"), image("b.png");
  std::filesystem::create_symlink("a.png", directory_.file("link.png"));
  const Dataset train = load("train.jsonl", {{"a.png", "cat"}}),
                val =
                    load("val.jsonl", {{"link.png", "cat"}, {"b.png", "cat"}, {"gone.png", "cat"}});
  const std::vector<std::string> warnings = overlap_warnings(train, val);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("1 of 3 images in " + val.path() + " is also in " + train.path()), 0u)
      << warnings[0];
  EXPECT_NE(warnings[0].find("link.png"), std::string::npos);
}

TEST_F(OverlapTest, NamesCopiesOfImagesThatAreTrainedOn) {
  const std::string large(100000, 'x');
  image("a.png"), directory_.write("large.png", large);
  directory_.write("copy.png", "a.png"), directory_.write("same.png", large);
  directory_.write("size.png", "b.png"), directory_.write("end.png", large.substr(1) + "y");
  const Dataset train = load("train.jsonl", {{"a.png", "cat"}, {"large.png", "cat"}}),
                val = load("val.jsonl", {{"copy.png", "cat"},
                                         {"same.png", "cat"},
                                         {"size.png", "cat"},
                                         {"end.png", "cat"}});
  const std::vector<std::string> warnings = overlap_warnings(train, val);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("2 of 4 images"), 0u) << warnings[0];
  EXPECT_NE(warnings[0].find("copy.png"), std::string::npos);
  EXPECT_NE(warnings[0].find("same.png"), std::string::npos);
}

TEST_F(OverlapTest, NamesClassesThatAreNeverTrained) {
  image("a.png"), image("b.png");
  const Dataset train = load("train.jsonl", {{"a.png", "cat"}}),
                val = load("val.jsonl", {{"b.png", "cat"}, {"b.png", "dog"}, {"b.png", "Dog"}});
  EXPECT_EQ(overlap_warnings(train, val),
            std::vector<std::string>{"1 of 2 classes in " + val.path() + " never occurs in " +
                                     train.path() + ": dog"});
}

TEST_F(OverlapTest, FreeTextHasNoClasses) {
  image("a.png"), image("b.png");
  std::vector<std::pair<std::string, std::string>> rows;
  for (int i = 0; i < 60; ++i) rows.emplace_back("a.png", "the cat number " + std::to_string(i));
  EXPECT_TRUE(
      overlap_warnings(load("train.jsonl", rows), load("val.jsonl", {{"b.png", "a new cat"}}))
          .empty());
}

}  // namespace rematch
