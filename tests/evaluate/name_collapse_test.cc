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
  names.add(named("cola", 40), named("Tobacco  Product", 92), {});
  names.add(named("bread", 60), named("bread", 8), {});
  const std::optional<NameCollapse> found = find_collapse(names);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text(), "92 % of answered names are \"tobacco product\", which no truth has");
}

TEST(NameCollapse, NamesAClassThatStandsForTheOthers) {
  NameCounts names;
  names.add("cat", 11, 80);
  names.add("dog", 89, 20);
  const std::optional<NameCollapse> found = find_collapse(names);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text(), "80 % of answered names are \"cat\", which 11 % of the truths have");
}

TEST(NameCollapse, IsNoneWhereOneClassIsFrequentOrLittleWasAnswered) {
  NameCounts one_class, frequent, few, spread;
  one_class.add("cat", 50, 60);
  frequent.add("cat", 60, 90);
  frequent.add("dog", 40, 10);
  few.add("cat", 0, 19);
  few.add("dog", 40, 0);
  spread.add("cat", 0, 49);
  spread.add("dog", 90, 51);
  for (const NameCounts& names : {one_class, frequent, few, spread, NameCounts()})
    EXPECT_FALSE(find_collapse(names));
}

TEST(NameCollapse, CountsOfPartsAreCountsOfTheWhole) {
  NameCounts a, b;
  a.add("cat", 1, 30);
  b.add("cat", 2, 30);
  b.add("dog", 90, 0);
  a.merge(b);
  EXPECT_EQ(a.all().at("cat"), (NameCounts::Count{3, 60}));
  EXPECT_TRUE(find_collapse(a));
}

}  // namespace rematch
