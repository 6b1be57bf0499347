#include "learn/evaluate/coco.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

LabelledBox box(const std::string& label, double x, double side = 50) {
  return {label, x, 10, side, side};
}

}  // namespace

TEST(CocoEvaluator, PerfectAnswersScoreOne) {
  CocoEvaluator coco;
  coco.add({box("cat", 0), box("dog", 100)}, {box("dog", 100), box("cat", 0)});
  const CocoResult scores = coco.scores();
  EXPECT_DOUBLE_EQ(scores[kAp], 1);
  EXPECT_DOUBLE_EQ(scores[kApMedium], 1);
  EXPECT_DOUBLE_EQ(scores[kAr100], 1);
  EXPECT_EQ(scores[kApLarge], -1) << "there are no large ones";
  ASSERT_EQ(scores.per_class.size(), 2u);
  EXPECT_EQ(scores.per_class[0].first, "cat");
}

TEST(CocoEvaluator, CountsAWrongLabelAsMissedAndAnUnknownOneAsNothing) {
  CocoEvaluator coco;
  coco.add({box("cat", 0), box("dog", 100)},
           {box("dog", 0), box("dog", 100), box("unheard of", 0)});
  const CocoResult scores = coco.scores();
  EXPECT_DOUBLE_EQ(scores.per_class[0].second[kAp50], 0);
  EXPECT_NEAR(scores.per_class[1].second[kAp50], 0.5, 1e-12)
      << "a wrong one stands before the right one";
  EXPECT_EQ(scores.per_class.size(), 2u);
}

TEST(CocoEvaluator, RanksAnEarlierObjectHigher) {
  CocoEvaluator first, last;
  first.add({box("cat", 0)}, {box("cat", 0), box("cat", 300)});
  last.add({box("cat", 0)}, {box("cat", 300), box("cat", 0)});
  EXPECT_DOUBLE_EQ(first.scores()[kAp], 1);
  EXPECT_NEAR(last.scores()[kAp], 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(last.scores()[kAr1], 0);
}

TEST(CocoEvaluator, RanksByScoreOnlyWhenEveryPredictionHasOne) {
  const auto scored = [](LabelledBox with, double score) {
    with.score = score;
    return with;
  };
  CocoEvaluator by_score, mixed, equal;
  by_score.add({box("cat", 0)}, {scored(box("cat", 300), 0.2), scored(box("cat", 0), 0.9)});
  EXPECT_DOUBLE_EQ(by_score.scores()[kAp], 1);
  EXPECT_TRUE(by_score.ranks_by_score());
  mixed.add({box("cat", 0)}, {box("cat", 300), scored(box("cat", 0), 0.9)});
  EXPECT_NEAR(mixed.scores()[kAp], 0.5, 1e-12);
  EXPECT_FALSE(mixed.ranks_by_score());
  equal.add({box("cat", 0)}, {scored(box("cat", 300), 0.5), scored(box("cat", 0), 0.5)});
  EXPECT_NEAR(equal.scores()[kAp], 0.5, 1e-12) << "equal scores: the order of the answer";
}

TEST(CocoEvaluator, IsUndefinedWithoutTruths) { EXPECT_EQ(CocoEvaluator().scores()[kAp], -1); }

TEST(CocoEvaluator, CountsImagesOfWhichItLeavesPredictionsOut) {
  CocoEvaluator coco;
  const LabelledBox box{.label = "a", .x = 0, .y = 0, .w = 10, .h = 10};
  coco.add({box}, std::vector<LabelledBox>(100, box));
  EXPECT_EQ(coco.num_cut(), 0);
  coco.add({box}, std::vector<LabelledBox>(101, box));
  EXPECT_EQ(coco.num_cut(), 1);
}

}  // namespace rematch
