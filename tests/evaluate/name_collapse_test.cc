#include "learn/evaluate/name_collapse.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

std::vector<SceneObject> named(const std::string& name, int count) {
  return std::vector<SceneObject>(static_cast<size_t>(count), SceneObject{name, {}});
}

}  // namespace

TEST(NameCollapse, NamesTheNameThatNoTruthHas) {
  NameCounts names;
  count_names(named("cola", 40), named("Tobacco  Product", 92), {}, names);
  count_names(named("bread", 60), named("bread", 8), {}, names);
  const std::optional<NameCollapse> found = find_collapse(names);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text(), "92 % of answered names are \"tobacco product\", which no truth has");
}

TEST(NameCollapse, NamesAClassThatStandsForTheOthers) {
  NameCounts names;
  names["cat"] = {11, 80};
  names["dog"] = {89, 20};
  const std::optional<NameCollapse> found = find_collapse(names);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text(), "80 % of answered names are \"cat\", which 11 % of the truths have");
}

TEST(NameCollapse, IsNoneWhereOneClassIsFrequentOrLittleWasAnswered) {
  NameCounts one_class, frequent, few, spread;
  one_class["cat"] = {50, 60};
  frequent["cat"] = {60, 90};
  frequent["dog"] = {40, 10};
  few["cat"] = {0, 19};
  few["dog"] = {40, 0};
  spread["cat"] = {0, 49};
  spread["dog"] = {90, 51};
  for (const NameCounts& names : {one_class, frequent, few, spread, NameCounts()})
    EXPECT_FALSE(find_collapse(names));
}

}  // namespace rematch
