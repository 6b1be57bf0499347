#include "learn/evaluate/probe_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rematch {
namespace {

using testing::HasSubstr;

/// A finished checkpoint on 200 images of five objects: F1 @ 0.5 is .9, one half of the missing
/// objects is found by samples.
ProbeNumbers healthy() {
  return {.by_count = {{.min_objects = 3,
                        .max_objects = 5,
                        .num_images = 200,
                        .num_truths = 1000,
                        .num_predictions = 1000,
                        .num_missing = 80,
                        .num_found = 40,
                        .num_repeated = 12}},
          .num_matched = 920,
          .num_matched_50 = 900,
          .num_named_right = 830,
          .matched_iou_sum = 800,
          .num_neighbours = 700,
          .num_in_order = 690,
          .num_draws = 8};
}

ProbeNumbers with(void (*change)(ProbeNumbers&)) {
  ProbeNumbers numbers = healthy();
  change(numbers);
  return numbers;
}

ProbeAction action(void (*change)(ProbeNumbers&), bool sorted = true) {
  return judge(with(change), sorted).action;
}

}  // namespace

TEST(ProbeNumbers, AreSharesOfTheirWholes) {
  const ProbeNumbers numbers = healthy();
  EXPECT_DOUBLE_EQ(numbers.f1_50(), 0.9);
  EXPECT_DOUBLE_EQ(numbers.label_accuracy(), 830.0 / 920);
  EXPECT_DOUBLE_EQ(numbers.duplicates(), 0.012);
  EXPECT_DOUBLE_EQ(numbers.missing(), 0.08);
  EXPECT_DOUBLE_EQ(numbers.found(), 0.5);
  EXPECT_DOUBLE_EQ(numbers.order_agreement().value(), 690.0 / 700);
  EXPECT_FALSE(ProbeNumbers{}.order_agreement()) << "an order needs two matches in an answer";
  EXPECT_DOUBLE_EQ(ProbeNumbers{}.found(), 0.0);
}

TEST(ProbeVerdict, RecommendsRewriteForAHealthyCheckpointWithRoom) {
  const ProbeVerdict verdict = judge(healthy(), true);
  EXPECT_EQ(verdict.action, ProbeAction::kRewrite);
  EXPECT_EQ(verdict.headline, "run stage 2 with target_policy: rewrite");
}

TEST(ProbeVerdict, SaysWhatStage2BroughtAnswersInDigits) {
  for (const bool sorted : {true, false}) {
    EXPECT_THAT(judge(healthy(), sorted, /*in_digits=*/true).headline,
                HasSubstr("no further than stage 1 of the same cost"));
    EXPECT_THAT(judge(healthy(), sorted).headline, testing::Not(HasSubstr("in digits")));
  }
}

TEST(ProbeVerdict, AddsAbsentClassesWhereTheyGetBoxes) {
  const auto said = [](int64_t num_answered) {
    ProbeNumbers numbers = healthy();
    numbers.num_absent = 40;
    numbers.num_absent_answered = num_answered;
    return judge(numbers, true).headline;
  };
  EXPECT_EQ(said(8), judge(healthy(), true).headline) << "a fifth";
  EXPECT_EQ(said(9), judge(healthy(), true).headline +
                         ". And it boxes listed classes that are not there: "
                         "`custom.absent_classes` teaches that");
}

TEST(ProbeVerdict, RecommendsStage1ForRunawayAnswers) {
  EXPECT_EQ(action([](ProbeNumbers& n) { n.greedy.truncated = 30; }), ProbeAction::kStage1);
  EXPECT_EQ(action([](ProbeNumbers& n) { n.greedy.malformed = 11; }), ProbeAction::kStage1);
  EXPECT_EQ(action([](ProbeNumbers& n) { n.by_count[0].num_repeated = 101; }),
            ProbeAction::kStage1);
  const ProbeVerdict verdict =
      judge(with([](ProbeNumbers& n) { n.by_count[0].num_predictions = 1900; }), true);
  EXPECT_EQ(verdict.action, ProbeAction::kStage1);
  EXPECT_THAT(verdict.headline, HasSubstr("run away"));
}

TEST(ProbeVerdict, NamesMaxNewTokensForTruncatedAnswers) {
  const ProbeVerdict verdict = judge(with([](ProbeNumbers& n) {
                                       n.greedy.truncated = 30;
                                       n.by_count[0].num_predictions = 900;
                                       n.by_count[0].num_repeated = 0;
                                     }),
                                     true);
  EXPECT_THAT(verdict.headline, HasSubstr("max_new_tokens"));
}

TEST(ProbeVerdict, ReportsMalformedAnswers) {
  const ProbeVerdict verdict = judge(with([](ProbeNumbers& n) {
                                       n.greedy.malformed = 134;
                                       n.by_count[0].num_predictions = 750;
                                       n.by_count[0].num_repeated = 0;
                                     }),
                                     true);
  EXPECT_THAT(verdict.headline, HasSubstr("too many answers are not JSON"));
}

TEST(ProbeVerdict, ReportsAnswersOfAnotherFormat) {
  const ProbeVerdict verdict =
      judge(with([](ProbeNumbers& n) {
              n.greedy = {.answers = 100, .with_object = 0, .dropped = 100};
              n.by_count[0].num_predictions = 0;
            }),
            true);
  EXPECT_EQ(verdict.action, ProbeAction::kStage1);
  EXPECT_THAT(verdict.headline, HasSubstr("custom.answer_format"));
  EXPECT_THAT(verdict.headline, HasSubstr("none of their 100 entries is an object"));
}

TEST(ProbeVerdict, RecommendsSortingForUnorderedAnswers) {
  EXPECT_EQ(action([](ProbeNumbers& n) { n.num_in_order = 380; }), ProbeAction::kSort);
  const ProbeNumbers unsorted = with([](ProbeNumbers& n) { n.num_in_order = 380; });
  const auto keeps_own = [](const ProbeNumbers& numbers, bool sorted, bool in_digits) {
    return judge(numbers, sorted, in_digits, /*has_order=*/true).headline.find("ordering: own") !=
           std::string::npos;
  };
  EXPECT_TRUE(keeps_own(unsorted, true, true));
  EXPECT_TRUE(keeps_own(healthy(), false, true));
  EXPECT_FALSE(keeps_own(healthy(), true, true)) << "the answers are sorted";
  EXPECT_FALSE(keeps_own(unsorted, true, false)) << "coord tokens gain nothing";
  const ProbeVerdict random = judge(healthy(), false);
  EXPECT_EQ(random.action, ProbeAction::kSort);
  EXPECT_THAT(random.headline,
              HasSubstr("where they cannot be sorted, run stage 2 with target_policy: rewrite"));
}

TEST(ProbeVerdict, RecommendsStage1ForForgottenLabels) {
  const ProbeVerdict verdict = judge(with([](ProbeNumbers& n) { n.num_named_right = 300; }), true);
  EXPECT_EQ(verdict.action, ProbeAction::kStage1);
  EXPECT_THAT(verdict.headline, HasSubstr("labels"));
}

TEST(ProbeVerdict, RecommendsStage1ForAnUnfinishedCheckpoint) {
  const ProbeVerdict verdict = judge(with([](ProbeNumbers& n) { n.num_matched_50 = 600; }), true);
  EXPECT_EQ(verdict.action, ProbeAction::kStage1);
  EXPECT_THAT(verdict.headline, HasSubstr("not finished"));
}

TEST(ProbeVerdict, RecommendsNoiseWhenSamplesFindNothing) {
  const auto barren = [](ProbeNumbers& n) {
    n.by_count[0].num_found = 10;
    n.by_count[0].num_repeated = 5;
  };
  EXPECT_EQ(action(barren), ProbeAction::kNoise);
}

TEST(ProbeVerdict, RecommendsStoppingWithNothingToGain) {
  const auto perfect = [](ProbeNumbers& n) {
    n.num_matched_50 = 980;
    n.num_named_right = 910;
    n.by_count[0].num_repeated = 1;
  };
  EXPECT_EQ(action(perfect), ProbeAction::kStop);
  EXPECT_EQ(judge({}, true).action, ProbeAction::kStop);
}

TEST(ProbeVerdict, ReportsTheMostSeriousFinding) {
  const auto everything = [](ProbeNumbers& n) {
    n.greedy.malformed = 100;
    n.num_in_order = 300;
    n.num_named_right = 100;
    n.num_matched_50 = 300;
  };
  EXPECT_THAT(judge(with(everything), true).headline, HasSubstr("not JSON"));
}

TEST(ProbeVerdict, IsAlwaysOneSentence) {
  for (const bool sorted : {true, false}) {
    for (const ProbeNumbers& numbers : {healthy(), ProbeNumbers{}})
      EXPECT_FALSE(judge(numbers, sorted).headline.empty());
  }
}

}  // namespace rematch
