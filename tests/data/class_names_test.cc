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
  EXPECT_THAT(spelling_warning(train, nullptr), HasSubstr("1 class in several spellings"));
  const Dataset val = data_of(dir, "v", {"DOG", "cat"});
  EXPECT_THAT(spelling_warning(train, &val), HasSubstr("Cat (1) / cat (3), DOG (1) / dog (1);"));
  EXPECT_EQ(spelling_warning(val, nullptr), "");
}

}  // namespace rematch
