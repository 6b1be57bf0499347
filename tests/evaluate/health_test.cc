#include "learn/evaluate/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace rematch {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

using Scores = std::map<std::string, double, std::less<>>;

/// A healthy model on 500 samples of six objects each, with changes.
Scores scores(const Scores& changed = {}) {
  Scores all{{"eval_rollout_precision", 0.9},
             {"eval_rollout_label_accuracy", 0.8},
             {"eval_rollout_duplicates", 0.01},
             {"eval_rollout_parse_truncated_rate", 0},
             {"eval_rollout_parse_malformed_rate", 0},
             {"eval_rollout_pred_per_gt", 1.0},
             {"eval_rollout_pred_objects", 3000},
             {"eval_rollout_gt_objects", 3000},
             {"eval_rollout_matched", 2700}};
  for (const auto& [name, value] : changed) all[name] = value;
  return all;
}

ScoreOf of(const Scores& scores) {
  return [scores](std::string_view name) {
    const auto found = scores.find(name);
    return found == scores.end() ? std::nullopt : std::optional(found->second);
  };
}

std::vector<std::string> harms(const Scores& before, const Scores& now, int64_t num_samples = 500) {
  std::vector<std::string> names;
  const Health health = compare_health(of(before), of(now), num_samples, 0).value();
  for (const Harm& harm : health.harms) names.push_back(harm.sign);
  return names;
}

}  // namespace

TEST(Health, EqualOrBetterScoresAreNoHarm) {
  EXPECT_THAT(harms(scores(), scores()), SizeIs(0));
  EXPECT_THAT(harms(scores({{"eval_rollout_precision", 0.5},
                            {"eval_rollout_parse_truncated_rate", 0.3},
                            {"eval_rollout_pred_per_gt", 1.9}}),
                    scores()),
              SizeIs(0));
  const Health health = *compare_health(of(scores()), of(scores()), 500, 0);
  EXPECT_EQ(health.lines(),
            std::vector<std::string>{"health: nothing in the answers is worse than at the start"});
  EXPECT_THAT(health.changes, SizeIs(6));
}

TEST(Health, AFallOfF1IsNamedWithoutAnAlarm) {
  const Scores before = scores({{"eval_rollout_f1", 0.914}, {"eval_rollout_f1_labels", 0.46}});
  const Scores now = scores({{"eval_rollout_f1", 0.877}, {"eval_rollout_f1_labels", 0.45}});
  const Health health = *compare_health(of(before), of(now), 500, 0);
  EXPECT_FALSE(health.is_worse());
  EXPECT_THAT(health.changes, SizeIs(6));
  const std::vector<std::string> lines = health.lines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], "health: fewer objects are right than at the start: f1 0.914 -> 0.877");
  EXPECT_THAT(lines[1], HasSubstr("  f1: training made it worse"));
}

TEST(Health, NothingToLoseWithoutAnyMatch) {
  const Scores useless = scores({{"eval_rollout_f1", 0}, {"eval_rollout_precision", 0}});
  EXPECT_EQ(compare_health(of(useless), of(useless), 500, 0)->lines(),
            std::vector<std::string>{"health: nothing to lose yet (F1 0 at the start)"});
  EXPECT_EQ(compare_health(of(useless), of(useless), 500, 5)->lines(),
            std::vector<std::string>{"health: nothing to lose yet (F1 0 after step 5)"});
  Scores worse = useless;
  worse["eval_rollout_parse_malformed_rate"] = 0.5;
  EXPECT_THAT(compare_health(of(useless), of(worse), 500, 0)->lines().front(),
              HasSubstr("worse than at the start: malformed"));
}

TEST(Health, EverySignRaisesAnAlarm) {
  EXPECT_EQ(harms(scores(), scores({{"eval_rollout_precision", 0.85}})),
            std::vector<std::string>{"precision"});
  EXPECT_EQ(harms(scores(), scores({{"eval_rollout_label_accuracy", 0.75}})),
            std::vector<std::string>{"label_accuracy"});
  EXPECT_EQ(harms(scores(), scores({{"eval_rollout_duplicates", 0.067}})),
            std::vector<std::string>{"duplicates"});
  EXPECT_EQ(harms(scores(), scores({{"eval_rollout_parse_truncated_rate", 0.1}})),
            std::vector<std::string>{"truncated"});
  EXPECT_EQ(harms(scores(), scores({{"eval_rollout_parse_malformed_rate", 0.1}})),
            std::vector<std::string>{"malformed"});
  EXPECT_EQ(harms(scores(), scores({{"eval_rollout_pred_per_gt", 1.26}})),
            std::vector<std::string>{"pred_per_gt"});
}

TEST(Health, AChangeWithinTheNoiseBetweenRunsIsNoHarm) {
  EXPECT_THAT(harms(scores(), scores({{"eval_rollout_precision", 0.885},
                                      {"eval_rollout_label_accuracy", 0.785},
                                      {"eval_rollout_duplicates", 0.019}})),
              SizeIs(0));
}

TEST(Health, AHandfulOfSamplesRaisesNoAlarm) {
  const Scores few{{"eval_rollout_pred_objects", 40},
                   {"eval_rollout_gt_objects", 40},
                   {"eval_rollout_matched", 30}};
  Scores worse = few;
  worse.insert({{"eval_rollout_precision", 0.85},
                {"eval_rollout_parse_truncated_rate", 0.0625},
                {"eval_rollout_pred_per_gt", 1.2}});
  EXPECT_THAT(harms(scores(few), scores(worse), 16), SizeIs(0));
}

TEST(Health, TooManyAndTooFewPredictionsGetDifferentAdvice) {
  const auto advice = [](double before, double now) {
    return compare_health(of(scores({{"eval_rollout_pred_per_gt", before}})),
                          of(scores({{"eval_rollout_pred_per_gt", now}})), 500, 0)
        ->lines()
        .at(1);
  };
  EXPECT_THAT(advice(1.0, 1.3), HasSubstr("more objects than there are"));
  EXPECT_THAT(advice(1.0, 0.7), HasSubstr("stops before every object"));
  EXPECT_THAT(advice(1.3, 0.7), HasSubstr("stops before every object"));
  EXPECT_THAT(compare_health(of(scores({{"eval_rollout_pred_per_gt", 1.0}})),
                             of(scores({{"eval_rollout_pred_per_gt", 1.3}})), 500, 0)
                  ->lines(/*is_stage1=*/true)
                  .at(1),
              Not(HasSubstr("rewrite")));
  EXPECT_THAT(harms(scores({{"eval_rollout_pred_per_gt", 1.4}}),
                    scores({{"eval_rollout_pred_per_gt", 0.95}})),
              SizeIs(0));
}

TEST(Health, MalformedAnswersAreTheReasonForMissingObjects) {
  const auto advice = [](double pred_per_gt, double malformed) {
    return compare_health(of(scores()),
                          of(scores({{"eval_rollout_pred_per_gt", pred_per_gt},
                                     {"eval_rollout_parse_malformed_rate", malformed}})),
                          500, 0)
        ->lines()
        .back();
  };
  EXPECT_THAT(advice(0.1, 0.9), HasSubstr("in the answers that are not JSON"));
  EXPECT_THAT(advice(0.1, 0.2), HasSubstr("stops before every object"));
}

TEST(Health, SharesOfNothingAreNoHarm) {
  const Scores now = scores({{"eval_rollout_precision", 0},
                             {"eval_rollout_label_accuracy", 0},
                             {"eval_rollout_parse_malformed_rate", 1},
                             {"eval_rollout_pred_per_gt", 0},
                             {"eval_rollout_pred_objects", 0},
                             {"eval_rollout_matched", 0}});
  EXPECT_EQ(harms(scores(), now), (std::vector<std::string>{"malformed", "pred_per_gt"}));
}

TEST(Health, ItsLinesNameEachHarmWithItsValuesAndOneSentenceOfAdvice) {
  const std::vector<std::string> lines =
      compare_health(
          of(scores()),
          of(scores({{"eval_rollout_precision", 0.5}, {"eval_rollout_duplicates", 0.2}})), 500, 20)
          ->lines();
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[0], HasSubstr("worse than after step 20"));
  EXPECT_THAT(lines[0], HasSubstr("precision 0.900 -> 0.500, duplicates 0.010 -> 0.200"));
  EXPECT_THAT(lines[1], HasSubstr("precision: "));
  EXPECT_THAT(lines[2], HasSubstr("duplicates: "));
}

TEST(Health, IsUnknownWithoutRollouts) {
  EXPECT_FALSE(compare_health(of({{"eval_loss", 1}}), of({{"eval_loss", 2}}), 500, 0));
  EXPECT_FALSE(compare_health(of(scores()), of({{"eval_loss", 2}}), 500, 0));
}

}  // namespace rematch
