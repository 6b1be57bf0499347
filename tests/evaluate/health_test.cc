#include "learn/evaluate/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "support/paths.h"

namespace rematch {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

using Scores = std::map<std::string, double, std::less<>>;
using advice::Training;

constexpr Training kRewrites{.kind = Training::Kind::kRewrite};
constexpr Training kStage1{.kind = Training::Kind::kStage1, .epoch = 10};

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
  EXPECT_EQ(health.lines(kRewrites),
            std::vector<std::string>{"health: nothing in the answers is worse than at the start"});
  EXPECT_THAT(health.changes, SizeIs(6));
}

TEST(Health, AFallOfF1IsNamedWithoutAnAlarm) {
  const Scores before = scores({{"eval_rollout_f1", 0.914}, {"eval_rollout_f1_labels", 0.46}});
  const Scores now = scores({{"eval_rollout_f1", 0.877}, {"eval_rollout_f1_labels", 0.45}});
  const Health health = *compare_health(of(before), of(now), 500, 0);
  EXPECT_FALSE(health.is_harmful());
  EXPECT_THAT(health.changes, SizeIs(6));
  const std::vector<std::string> lines = health.lines(kRewrites);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], "health: fewer objects are right than at the start: f1 0.914 -> 0.877");
  EXPECT_THAT(lines[1], HasSubstr("  f1: lower the learning rate"));
}

TEST(Health, NothingToLoseWithoutAnyMatch) {
  const Scores useless = scores({{"eval_rollout_f1", 0}, {"eval_rollout_precision", 0}});
  EXPECT_EQ(compare_health(of(useless), of(useless), 500, 0)->lines(kRewrites),
            std::vector<std::string>{"health: nothing to lose yet (F1 0 at the start)"});
  EXPECT_EQ(compare_health(of(useless), of(useless), 500, 5)->lines(kRewrites),
            std::vector<std::string>{"health: nothing to lose yet (F1 0 after step 5)"});
  Scores worse = useless;
  worse["eval_rollout_parse_malformed_rate"] = 0.5;
  EXPECT_EQ(compare_health(of(useless), of(worse), 500, 0)->lines(kRewrites),
            std::vector<std::string>{"health: nothing to lose yet (F1 0 at the start)"});
  EXPECT_THAT(harms(useless, worse), SizeIs(0));
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

/// Rows of the table of docs/health.md: sign, score, "falls by more than .02".
std::vector<std::vector<std::string>> documented_signs() {
  std::istringstream page(read_file(test::source_path("docs/health.md")));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    std::erase(line, '`');
    const std::vector<std::string> cells = split(line, '|');
    for (const Sign& sign : signs()) {
      if (cells.at(1) == std::string(" ") + sign.name + " ")
        rows.push_back({sign.name, cells.at(2), cells.at(3)});
    }
  }
  return rows;
}

TEST(Health, ItsPageHasTheRowOfEverySign) {
  const std::vector<std::vector<std::string>> rows = documented_signs();
  size_t row = 0;
  for (const Sign& sign : signs()) {
    if (!sign.alarms) continue;
    ASSERT_LT(row, rows.size());
    const char* verb = sign.worse == Worse::kLower    ? "falls by more than"
                       : sign.worse == Worse::kHigher ? "rises by more than"
                                                      : "is farther from 1 than before, by more "
                                                        "than";
    std::string tolerance = std::to_string(sign.tolerance).substr(1);
    tolerance.resize(tolerance.find_last_not_of('0') + 1);
    EXPECT_EQ(rows[row][0], sign.name);
    EXPECT_EQ(rows[row][1], std::string(" ") + sign.score + " ");
    EXPECT_EQ(rows[row][2], std::string(" ") + verb + " " + tolerance + " ");
    ++row;
  }
  EXPECT_EQ(row, rows.size());
}

TEST(Health, EveryRowOfItsPageHolds) {
  for (const Sign& sign : signs()) {
    if (!sign.alarms) continue;
    const double start = sign.worse == Worse::kFartherFromOne ? 1.5 : 0.5;
    const double worse = sign.worse == Worse::kLower ? -1 : 1;
    const auto is_harm = [&](double change) {
      Scores before = scores({{sign.score, start}}), now = scores({{sign.score, start + change}});
      for (Scores* each : {&before, &now}) {
        if (*sign.count != '\0') (*each)[sign.count] = 1e9;
      }
      return harms(before, now, 1'000'000'000) == std::vector<std::string>{sign.name};
    };
    EXPECT_TRUE(is_harm(worse * sign.tolerance * 1.01)) << sign.name;
    EXPECT_FALSE(is_harm(worse * sign.tolerance * 0.99)) << sign.name;
    EXPECT_FALSE(is_harm(-worse * sign.tolerance * 1.01)) << sign.name;
    for (const bool is_before : {true, false}) {
      if (*sign.count == '\0') continue;
      Scores before = scores({{sign.score, start}}),
             now = scores({{sign.score, start + worse * 0.4}});
      (is_before ? before : now)[sign.count] = 0;
      EXPECT_THAT(harms(before, now), Not(testing::Contains(sign.name)))
          << sign.name << ": a share of nothing";
    }
  }
}

TEST(Health, ComingCloserToOnePredictionPerTruthFromEitherSideIsNoHarm) {
  const auto harm = [](double before, double now) {
    return harms(scores({{"eval_rollout_pred_per_gt", before}}),
                 scores({{"eval_rollout_pred_per_gt", now}}));
  };
  EXPECT_THAT(harm(4.303, 0.404), SizeIs(0));
  EXPECT_THAT(harm(0, 1.573), SizeIs(0));
  EXPECT_THAT(harm(1.3, 0.5), testing::ElementsAre("pred_per_gt"));
}

TEST(Health, TheFirstReadableAnswersAreNoHarm) {
  const Scores unread = scores({{"eval_rollout_f1", 0},
                                {"eval_rollout_parse_malformed_rate", 1},
                                {"eval_rollout_pred_objects", 0},
                                {"eval_rollout_matched", 0},
                                {"eval_rollout_duplicates", 0},
                                {"eval_rollout_pred_per_gt", 0}}),
               first = scores({{"eval_rollout_f1", 0.024},
                               {"eval_rollout_duplicates", 0.301},
                               {"eval_rollout_pred_per_gt", 1.573},
                               {"eval_rollout_parse_malformed_rate", 0.362}});
  const Health health = *compare_health(of(unread), of(first), 58, 50);
  EXPECT_FALSE(health.is_harmful());
  EXPECT_EQ(health.lines(kStage1),
            std::vector<std::string>{"health: nothing to lose yet (F1 0 after step 50)"});
}

TEST(Health, ARisingF1IsNeverHarmful) {
  const auto harmful = [](double f1) {
    const Health health = *compare_health(
        of(scores({{"eval_rollout_f1", 0.5}})),
        of(scores({{"eval_rollout_f1", f1}, {"eval_rollout_duplicates", 0.3}})), 500, 0);
    EXPECT_THAT(health.harms, SizeIs(1)) << "it is named all the same";
    return health.is_harmful();
  };
  EXPECT_TRUE(harmful(0.4));
  EXPECT_TRUE(harmful(0.5));
  EXPECT_FALSE(harmful(0.51));
}

TEST(Health, AdviceFitsTheRun) {
  const Health worse = *compare_health(of(scores()),
                                       of(scores({{"eval_rollout_precision", 0.5},
                                                  {"eval_rollout_label_accuracy", 0.5},
                                                  {"eval_rollout_duplicates", 0.3},
                                                  {"eval_rollout_parse_truncated_rate", 0.5},
                                                  {"eval_rollout_parse_malformed_rate", 0.5},
                                                  {"eval_rollout_pred_per_gt", 3}})),
                                       500, 0);
  const auto advice = [&](Training::Kind kind) {
    return join(worse.lines({.kind = kind, .epoch = 10}), "\n");
  };
  EXPECT_THAT(advice(Training::Kind::kAppend), HasSubstr("target_policy: rewrite"));
  EXPECT_THAT(advice(Training::Kind::kRewrite), Not(HasSubstr("rewrite")))
      << "a run is not advised what it does";
  for (const char* word : {"rewrite", "append", "rollout_share"})
    EXPECT_THAT(advice(Training::Kind::kStage1), Not(HasSubstr(word)));
  EXPECT_EQ(worse.lines({.kind = Training::Kind::kStage1, .epoch = 2.9}).back(),
            std::string("  ") + advice::kTrainOn);
}

TEST(Health, ALowerRateIsAdvisedOnlyWhereNamesWereMoreVaried) {
  const auto advice = [](bool was_varied, double epoch) {
    return std::string(
        advice::for_collapse({.kind = Training::Kind::kStage1, .epoch = epoch}, was_varied));
  };
  EXPECT_THAT(advice(true, 1), HasSubstr("lower the learning rate"));
  EXPECT_EQ(advice(false, 1), advice::kTrainOn);
  EXPECT_THAT(advice(false, 9), HasSubstr("the prompt lists the names"));
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
        ->lines(kRewrites)
        .at(1);
  };
  EXPECT_THAT(advice(1.0, 1.3), HasSubstr("more objects than there are"));
  EXPECT_THAT(advice(1.0, 0.7), HasSubstr("stops before every object"));
  EXPECT_THAT(advice(1.3, 0.5), HasSubstr("stops before every object"));
  EXPECT_THAT(compare_health(of(scores({{"eval_rollout_pred_per_gt", 1.0}})),
                             of(scores({{"eval_rollout_pred_per_gt", 1.3}})), 500, 0)
                  ->lines(kStage1)
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
        ->lines(kRewrites)
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
          ->lines(kRewrites);
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
