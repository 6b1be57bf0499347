#include "estep/match/repeats.h"

#include <gtest/gtest.h>

#include "support/capture.h"

namespace rematch {
namespace {

SceneObject box(const std::string& desc, int x) {
  return {desc, {GeometryKind::kBbox2d, {x, 100, x + 200, 300}}};
}

// Each overlaps its neighbour with IoU 1/1.5 = 0.67 (160 of 240) and the next but one with 0.43.
const std::vector<SceneObject> kChain = {box("cat", 100), box("cat", 140), box("cat", 180)};

}  // namespace

TEST(RepeatedObjects, OfAcceptedOnesLetAChainThrough) {
  EXPECT_EQ(repeated_objects(kChain, 0.5, 256, RepeatOf::kAccepted), (std::vector<int>{1}));
  EXPECT_EQ(repeated_objects(kChain, 0.5, 256, RepeatOf::kEarlier), (std::vector<int>{1, 2}));
}

TEST(RepeatedObjects, NeedTheSameDesc) {
  EXPECT_TRUE(
      repeated_objects({box("cat", 100), box("Cat", 100)}, 0.5, 256, RepeatOf::kEarlier).empty());
  EXPECT_EQ(repeated_objects({box("cat", 100), box("dog", 100), box("cat", 100)}, 1.0, 256,
                             RepeatOf::kEarlier),
            (std::vector<int>{2}));
}

TEST(MatchDeduplicated, SetsRepeatsAsideAndKeepsThePlacesOfTheRest) {
  const std::vector<SceneObject> predictions = {box("cat", 100), box("cat", 140), box("dog", 600)};
  const std::vector<SceneObject> truth = {box("dog", 600), box("cat", 140)};
  const TargetMatching found = match_deduplicated(predictions, truth, {}, 0.5);
  EXPECT_EQ(found.deduplicated, (std::vector<int>{1}));
  EXPECT_EQ(found.matching.pairs, (std::vector<std::pair<int, int>>{{0, 1}, {2, 0}}));
  EXPECT_TRUE(found.matching.false_positives.empty());
  const TargetMatching all = match_deduplicated(predictions, truth, {}, std::nullopt);
  EXPECT_TRUE(all.deduplicated.empty());
  EXPECT_EQ(all.matching.pairs, (std::vector<std::pair<int, int>>{{1, 1}, {2, 0}}));
  EXPECT_EQ(all.matching.false_positives, (std::vector<int>{0}));
}

TEST(MatchDeduplicated, RefusesAnIouOutOfRange) {
  for (const double iou : {0.0, 1.01}) {
    EXPECT_EQ(
        test::catch_user_error([&] { match_deduplicated({}, {}, {}, iou); }).problems()[0].where,
        "custom.extra.rollout_matching.dedup_iou");
  }
}

}  // namespace rematch
