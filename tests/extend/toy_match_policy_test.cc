// A match policy of one's own: the first prediction stands for the first ground truth, and so on.
#include <gtest/gtest.h>

#include <algorithm>

#include "extend/in_process.h"
#include "learn/estep/match/match_policy.h"

namespace rematch {
namespace {

Matching in_order(const std::vector<SceneObject>& predictions,
                  const std::vector<SceneObject>& ground_truth, const MatchSettings&) {
  Matching matching;
  const int num_pairs = static_cast<int>(std::min(predictions.size(), ground_truth.size()));
  for (int i = 0; i < num_pairs; ++i) matching.pairs.emplace_back(i, i);
  for (int p = num_pairs; p < static_cast<int>(predictions.size()); ++p)
    matching.false_positives.push_back(p);
  for (int g = num_pairs; g < static_cast<int>(ground_truth.size()); ++g)
    matching.false_negatives.push_back(g);
  return matching;
}

const bool match_added =
    match_policies().add({"toy_in_order", "by position in the answer", in_order});

}  // namespace

TEST(ToyMatchPolicy, IsChosenByYamlAndDecidesThePairs) {
  ASSERT_TRUE(match_added);
  for (const auto& line :
       test::trained_with("match_policy: toy_in_order, rollout_backend: toy_parrot")) {
    EXPECT_EQ(line.at("rollout/valid_pred_objects"), 4);
    EXPECT_GE(line.at("rollout/matched_for_supervision"), 3)
        << "one in each sample that holds an object, wherever it lies";
    EXPECT_EQ(line.at("rollout/gating_rejections"), 0);
  }
}

}  // namespace rematch
