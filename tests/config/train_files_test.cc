#include "config/support.h"

namespace rematch {
namespace {

using test::load_text;
using test::problems_of;

std::vector<TrainFile> files_of(const std::string& value) {
  return load_text("", {"custom.train_jsonl=" + value}).settings.data.train_files;
}

std::string shown(const std::string& value) {
  for (const EffectiveValue& row : load_text("", {"custom.train_jsonl=" + value}).effective) {
    if (row.key == "custom.train_jsonl") return row.value;
  }
  return "";
}

}  // namespace

TEST(TrainFiles, AreAPathAListOrFilesWithWeights) {
  EXPECT_EQ(files_of("a.jsonl"), (std::vector<TrainFile>{{"a.jsonl", 1}}));
  EXPECT_EQ(files_of("[a.jsonl]"), (std::vector<TrainFile>{{"a.jsonl", 1}}));
  EXPECT_EQ(files_of("[a.jsonl, b.jsonl]"),
            (std::vector<TrainFile>{{"a.jsonl", 1}, {"b.jsonl", 1}}));
  EXPECT_EQ(files_of("[{path: a.jsonl, weight: 0.5}, b.jsonl, {path: c.jsonl}]"),
            (std::vector<TrainFile>{{"a.jsonl", 0.5}, {"b.jsonl", 1}, {"c.jsonl", 1}}));
  EXPECT_EQ(files_of("{path: a.jsonl, weight: 2}"), (std::vector<TrainFile>{{"a.jsonl", 2}}));
}

TEST(TrainFiles, OnePathIsShownAsAlways) {
  EXPECT_EQ(shown("a.jsonl"), "a.jsonl");
  EXPECT_EQ(shown("[a.jsonl]"), "a.jsonl");
  EXPECT_EQ(shown("[{path: a.jsonl, weight: 1}]"), "a.jsonl");
  EXPECT_EQ(shown("[a.jsonl, {path: b.jsonl, weight: 2.5}]"),
            R"(["a.jsonl", {"path": "b.jsonl", "weight": 2.5}])");
}

TEST(TrainFiles, WhatIsWrongIsNamed) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"[{path: a.jsonl, weight: 0}]", "weight is out of range"},
      {"[{path: a.jsonl, weight: -1}]", "weight is out of range"},
      {"[{path: a.jsonl, weight: .nan}]", "weight is out of range"},
      {"[{path: a.jsonl, weight: .inf}]", "weight is out of range"},
      {"[{path: a.jsonl, weight: 1e9}]", "weight is out of range"},
      {"[{path: a.jsonl, weight: '2'}]", "weight is out of range"},
      {"[{path: a.jsonl, weight: [1]}]", "weight is out of range"},
      {"[{path: a.jsonl, wieght: 2}]", "unknown key `wieght`"},
      {"[{weight: 2}]", "an entry has no `path`"},
      {"[[a.jsonl]]", "an entry is not a path"},
      {"[{path: [a]}]", "an entry is not a path"},
      {"[a.jsonl, '']", "an entry is not a path"},
      {"[]", "no file is listed"},
  };
  for (const auto& [value, error] : cases) {
    const auto problems = problems_of("", {std::string("custom.train_jsonl=") + value});
    ASSERT_EQ(problems.size(), 1u) << value;
    EXPECT_THAT(problems[0].error, testing::HasSubstr(error)) << value;
    EXPECT_FALSE(problems[0].fix.empty());
  }
}

TEST(TrainFiles, AugmentationHasRanges) {
  EXPECT_FALSE(load_text("").settings.augment.is_on());
  EXPECT_EQ(load_text("data: {augment: {hflip: 0.5, crop: 0.6, color: 0.2}}\n").settings.augment,
            (AugmentSettings{.hflip = 0.5, .crop = 0.6, .color = 0.2}));
  EXPECT_EQ(
      load_text("data: {augment: {vflip: 0.5, vflip_words: true, rot90: 0.75}}\n").settings.augment,
      (AugmentSettings{.vflip = 0.5, .vflip_words = true, .rot90 = 0.75}));
  for (const char* value :
       {"hflip: 1.1", "hflip: -0.1", "vflip: 2", "rot90: -1", "crop: 0", "crop: 1.5", "color: 1"})
    EXPECT_EQ(problems_of("data: {augment: {" + std::string(value) + "}}\n").size(), 1u) << value;
}

}  // namespace rematch
