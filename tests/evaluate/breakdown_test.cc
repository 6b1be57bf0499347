#include "learn/evaluate/breakdown.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

SceneObject object(const std::string& desc) {
  return {desc, {GeometryKind::kBbox2d, {1, 2, 3, 4}}};
}

}  // namespace

TEST(Breakdown, CountsEachClassByTruthAndByAnswer) {
  Breakdown breakdown{LabelMatch()};
  // The cat is named right, the dog is placed but called a cat, the bird is missed, and a dog is
  // invented.
  breakdown.add({object("cat"), object("dog"), object("bird")},
                {object("Cat"), object("cat"), object("dog")}, {.pairs = {{0, 0}, {1, 1}}});
  const std::vector<BreakdownRow> classes = breakdown.classes();
  ASSERT_EQ(classes.size(), 3u);
  const auto row = [&](const std::string& name) {
    for (const BreakdownRow& one : classes) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << name;
    return BreakdownRow{};
  };
  EXPECT_EQ(row("cat").predictions, 2);
  EXPECT_DOUBLE_EQ(row("cat").precision_labels(), 0.5);
  EXPECT_DOUBLE_EQ(row("cat").recall_labels(), 1.0);
  EXPECT_DOUBLE_EQ(row("dog").recall(), 1.0);
  EXPECT_DOUBLE_EQ(row("dog").recall_labels(), 0.0);
  EXPECT_DOUBLE_EQ(row("bird").recall(), 0.0);
  EXPECT_EQ(row("bird").num_images, 1);
  const std::vector<BreakdownRow> counts = breakdown.counts();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].name, "3");
  EXPECT_DOUBLE_EQ(counts[0].f1(), 4.0 / 6.0);
  EXPECT_DOUBLE_EQ(counts[0].f1_labels(), 2.0 / 6.0);
}

TEST(Breakdown, GroupsImagesByTheirNumberOfObjects) {
  Breakdown breakdown{LabelMatch()};
  const auto scene = [](int count) {
    return std::vector<SceneObject>(static_cast<size_t>(count), object("cat"));
  };
  for (const int count : {0, 4, 5, 30, 1}) breakdown.add(scene(count), {}, {});
  std::vector<std::string> names;
  for (const BreakdownRow& row : breakdown.counts()) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0", "1", "4–5", "21+"}));
  EXPECT_EQ(breakdown.counts()[2].num_images, 2);
  EXPECT_EQ(breakdown.counts()[0].f1(), 0);
}

}  // namespace rematch
