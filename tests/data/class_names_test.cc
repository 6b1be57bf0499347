#include "learn/data/class_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

Dataset data_of(const test::TempDir& dir, const std::string& name,
                const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels)
    text += R"({"images": ["a.png"], "width": 64, "height": 64, "objects": [{"desc": ")" + label +
            R"(", "bbox_2d": [1, 2, 30, 40]}]})" + "\n";
  return Dataset::load(dir.write(name, text), {.check_image_files = false});
}

}  // namespace

TEST(ClassNames, SpellingsAreCountedWithExamples) {
  const test::TempDir dir;
  const Dataset train = data_of(dir, "t", {"cat", "cat", "Cat", "dog"});
  EXPECT_THAT(class_name_warnings(train, nullptr).at(0), HasSubstr("1 class in several spellings"));
  const Dataset val = data_of(dir, "v", {"DOG", "cat"});
  EXPECT_THAT(class_name_warnings(train, &val).at(0),
              HasSubstr("Cat (1) / cat (3), DOG (1) / dog (1);"));
  EXPECT_TRUE(class_name_warnings(val, nullptr).empty());
}

TEST(ClassNames, NumbersAreNoWords) {
  const test::TempDir dir;
  EXPECT_THAT(class_name_warnings(data_of(dir, "t", {"0", "12"}), nullptr).at(0),
              HasSubstr("the names of the classes are numbers (0)"));
  EXPECT_TRUE(class_name_warnings(data_of(dir, "v", {"0", "cat"}), nullptr).empty());
}

}  // namespace rematch
