#include "learn/data/class_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rematch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const ClassNames kNames(std::vector<Sample>{{.objects = {{.desc = "cup"},
                                                         {.desc = "tea cup"},
                                                         {.desc = "spoon"},
                                                         {.desc = "plate"},
                                                         {.desc = "苹果"},
                                                         {.desc = "梨"}}}});

std::vector<std::string> names_in(const std::string& prompt) {
  const std::optional<ClassList> list = find_class_list(prompt, kNames);
  return list ? list->names : std::vector<std::string>{};
}

/// A prompt whose list is replaced.
std::string replaced(const std::string& prompt, const std::vector<std::string>& names) {
  return with_names(prompt, find_class_list(prompt, kNames).value(), names);
}

}  // namespace

TEST(ClassList, IsFoundInThePromptsOfTheImporter) {
  EXPECT_THAT(names_in("Locate every object of these categories in this image: tea cup, spoon. "
                       "Report the label and the bbox coordinates of each in JSON format."),
              ElementsAre("tea cup", "spoon"));
  EXPECT_THAT(names_in("Locate every object of these categories in this image: cup. Report it."),
              ElementsAre("cup"));
}

TEST(ClassList, HasItsMarksAndWordsInTheUsualForms) {
  EXPECT_THAT(names_in("Find every cup, spoon and plate in the picture."),
              ElementsAre("cup", "spoon", "plate"));
  EXPECT_THAT(names_in("Find the Cup or the spoon"), IsEmpty()) << "`the` is no mark";
  EXPECT_THAT(names_in("Detect [\"cup\", 'spoon'] as JSON"), ElementsAre("cup", "spoon"));
  EXPECT_THAT(names_in("Classes:\n- Cup\n- spoon\n\nReport boxes."), ElementsAre("Cup", "spoon"));
  EXPECT_THAT(names_in("Classes:\n* cup\n* kiwi\n* spoon\nReport boxes."),
              ElementsAre("cup", "kiwi", "spoon"));
  EXPECT_THAT(names_in("检测：苹果、梨。"), ElementsAre("苹果", "梨"));
  EXPECT_THAT(names_in("cup|spoon|plate"), ElementsAre("cup", "spoon", "plate"));
}

TEST(ClassList, HasNamesOfNoObjectOnlyBetweenAColonAndTheEnd) {
  EXPECT_THAT(names_in("Find: cup, kiwi fruit, spoon."), ElementsAre("cup", "kiwi fruit", "spoon"));
  EXPECT_THAT(names_in("Find: kiwi, \"cup\"."), ElementsAre("kiwi", "cup"));
  EXPECT_THAT(names_in("Find [\"kiwi\", \"cup\"]"), ElementsAre("kiwi", "cup"));
  EXPECT_THAT(names_in("Find cup, spoon, and report each in JSON"), ElementsAre("cup", "spoon"));
  EXPECT_THAT(names_in("Find: cup, spoon and report each."), ElementsAre("cup", "spoon"));
  EXPECT_THAT(names_in("Find: kiwi, melon."), IsEmpty());
}

TEST(ClassList, IsNoSingleNameInASentence) {
  EXPECT_THAT(names_in("Find every cup in the picture."), IsEmpty());
  EXPECT_THAT(names_in("Find every cupboard, teaspoon and platen."), IsEmpty());
  EXPECT_THAT(names_in("Task: find every cup in it, and answer."), IsEmpty());
  EXPECT_THAT(names_in(""), IsEmpty());
}

TEST(ClassList, KeepsItsMarksWhenNamesChange) {
  EXPECT_EQ(replaced("Find: cup. Report it.", {"cup", "plate"}), "Find: cup, plate. Report it.");
  EXPECT_EQ(replaced("Find cup and spoon.", {"a", "b", "c"}), "Find a and b and c.");
  EXPECT_EQ(replaced("Find cup, spoon, and plate.", {"a", "b", "c", "d"}), "Find a, b, c, and d.");
  EXPECT_EQ(replaced("Find [\"cup\"]", {"a", "b"}), "Find [\"a\", \"b\"]");
  EXPECT_EQ(replaced("Find ['cup', 'spoon']", {"a", "b", "c"}), "Find ['a', 'b', 'c']");
  EXPECT_EQ(replaced("Find:\n- cup\n- spoon\n", {"a", "b", "c"}), "Find:\n- a\n- b\n- c\n");
  EXPECT_EQ(replaced("检测：苹果、梨。", {"a", "b", "c"}), "检测：a、b、c。");
}

}  // namespace rematch
