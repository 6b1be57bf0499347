#include "learn/estep/answer/object_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rematch {

TEST(ObjectScore, SumsTheTextAndAveragesTheCoordinates) {
  // the previous entry, then: text, coordinate, text, coordinate, text
  const std::vector<float> logprobs{-9, -0.5f, -1, -0.25f, -2, -0.125f, -9};
  const std::vector<TokenSpan> coords{{2, 3}, {4, 5}};
  EXPECT_NEAR(object_score(logprobs, {1, 6}, coords),
              std::exp(-0.5 - 0.25 - 0.125 + (-1.0 - 2.0) / 2), 1e-12);
}

TEST(ObjectScore, ACoordinateInDigitsHasTheSumOfItsTokens) {
  const std::vector<float> logprobs{-0.5f, -1, -2, -4, -0.25f};
  const std::vector<TokenSpan> coords{{1, 3}, {3, 4}};
  EXPECT_NEAR(object_score(logprobs, {0, 5}, coords), std::exp(-0.75 + (-3.0 - 4.0) / 2), 1e-12);
}

TEST(ObjectScore, IsAtMostOneAndMayVanish) {
  const std::vector<float> sure{1e-7f, 1e-7f};
  EXPECT_EQ(object_score(sure, {0, 2}, {}), 1);
  const std::vector<float> never(100, -100);
  EXPECT_EQ(object_score(never, {0, 100}, {}), 0);
}

TEST(ObjectScores, AreAbsentWithoutLogProbabilities) {
  const ParsedObject object{.entry = {0, 2}, .coord_tokens = {{1, 2}}};
  EXPECT_TRUE(object_scores({object}, {}).empty());
  EXPECT_EQ(object_scores({object, object}, {-1, -2}),
            (std::vector<double>{std::exp(-3.0), std::exp(-3.0)}));
}

}  // namespace rematch
