#include "estep/match/repeats.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

SceneObject box(const std::string& desc, int x) {
  return {desc, {GeometryKind::kBbox2d, {x, 100, x + 200, 300}}};
}

// Each overlaps its neighbour with IoU 1/1.5 = 0.67 (160 of 240) and the next but one with 0.43.
const std::vector<SceneObject> kChain = {box("cat", 100), box("cat", 140), box("cat", 180)};

}  // namespace

TEST(RepeatedObjects, RepeatAnyEarlierObject) {
  EXPECT_EQ(repeated_objects(kChain, 0.5, 256), (std::vector<int>{1, 2}));
}

TEST(RepeatedObjects, NeedTheSameDesc) {
  EXPECT_TRUE(repeated_objects({box("cat", 100), box("Cat", 100)}, 0.5, 256).empty());
  EXPECT_EQ(repeated_objects({box("cat", 100), box("dog", 100), box("cat", 100)}, 1.0, 256),
            (std::vector<int>{2}));
}

}  // namespace rematch
