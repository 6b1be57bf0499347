#include "learn/evaluate/score_calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "learn/evaluate/confidence.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// Low scores whose hits have the probability √score · 3, as of a detector that finds much.
RankedClass draw_class(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  RankedClass drawn{.label = "cat"};
  for (size_t i = 0; i < count; ++i) {
    const double score = 0.1 * std::pow(uniform(random), 2);
    drawn.predictions.push_back({score, uniform(random) < 3 * std::sqrt(score)});
  }
  return drawn;
}

double error_of(RankedClass ranked, const ScoreCalibration& scale) {
  for (RankedClass::Prediction& one : ranked.predictions) one.score = scale(one.score);
  return calibrate({ranked}).error;
}

}  // namespace

TEST(ScoreCalibration, FitsUnseenScores) {
  const RankedClass seen = draw_class(1, 4000), unseen = draw_class(2, 8000);
  const auto scale = ScoreCalibration::fit(seen.predictions);
  ASSERT_TRUE(scale);
  EXPECT_GT(calibrate({unseen}).error, 0.3) << "raw scores are low";
  EXPECT_LE(error_of(unseen, *scale), 0.03);
}

TEST(ScoreCalibration, KeepsRanks) {
  const auto scale = ScoreCalibration::fit(draw_class(3, 300).predictions);
  double last = -1;
  for (double score = 0; score <= 1; score += 1e-4) {
    EXPECT_GT((*scale)(score), last) << score;
    last = (*scale)(score);
    EXPECT_GE(last, 0);
    EXPECT_LE(last, 1);
  }
}

TEST(ScoreCalibration, PoolsViolators) {
  RankedClass ranked;
  for (const double score : {0.1, 0.1, 0.1, 0.1}) ranked.predictions.push_back({score, true});
  for (const double score : {0.2, 0.2, 0.2, 0.2}) ranked.predictions.push_back({score, false});
  for (const double score : {0.4, 0.4, 0.4, 0.4}) ranked.predictions.push_back({score, true});
  const std::vector<ScoreCalibration::Point> points =
      ScoreCalibration::fit(ranked.predictions)->points();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_DOUBLE_EQ(points[0].precision, 0.5);
  EXPECT_NEAR(points[0].score, std::sqrt(0.1 * 0.2), 1e-12);
  EXPECT_DOUBLE_EQ(points[1].precision, 1);
}

TEST(ScoreCalibration, TakesScoresOfZeroAndOneGroup) {
  RankedClass ranked;
  ranked.predictions = {{0, false}, {0, true}};
  const auto scale = ScoreCalibration::fit(ranked.predictions);
  EXPECT_NEAR((*scale)(0), 0.5, 1e-5);
  EXPECT_NEAR((*scale)(1), 0.5, 1e-5);
  EXPECT_FALSE(ScoreCalibration::fit({})) << "no prediction";
}

TEST(ScoreCalibration, IsKeptInTheCheckpoint) {
  const test::TempDir dir;
  EXPECT_FALSE(ScoreCalibration::read(dir.path()));
  auto scale = ScoreCalibration::fit(draw_class(4, 500).predictions);
  scale->set_eval_set("64 records");
  scale->set_step(8);
  scale->write(dir.path(), 8);
  const auto found = ScoreCalibration::read(dir.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->points(), scale->points());
  EXPECT_EQ(found->eval_set(), "64 records");
  EXPECT_EQ(found->step(), 8);
}

TEST(ScoreCalibration, TheStepOfTheWeightsIsThatOfTheRun) {
  const test::TempDir dir;
  EXPECT_FALSE(step_of_weights(dir.path()));
  dir.write("trainer_state.json", R"({"global_step": 8, "epoch": 1.5})");
  EXPECT_EQ(step_of_weights(dir.path()), 8);
  auto scale = ScoreCalibration::fit({{.score = 0.5, .is_hit = true}});
  EXPECT_TRUE(scale->fits(dir.path())) << "of older versions";
  scale->set_step(4);
  EXPECT_FALSE(scale->fits(dir.path()));
  scale->set_step(8);
  EXPECT_TRUE(scale->fits(dir.path()));
  dir.write("trainer_state.json", "{");
  EXPECT_FALSE(step_of_weights(dir.path()));
}

TEST(ScoreCalibration, AnOlderFitIsToldWithoutTheStateOfTheRun) {
  const test::TempDir dir;  // no trainer_state.json
  auto scale = ScoreCalibration::fit({{.score = 0.5, .is_hit = true}});
  for (const int64_t step : {8, 4}) {
    scale->set_step(step);
    scale->write(dir.path(), 8);
    const auto found = ScoreCalibration::read(dir.path());
    EXPECT_EQ(found->fits(dir.path()), step == 8);
    EXPECT_EQ(found->weights_step(dir.path()).value_or(8), 8);
  }
}

TEST(ScoreCalibration, DamageIsAnError) {
  const test::TempDir dir;
  for (const char* points :
       {"[]", "7", "[[0.5]]", "[[0.5, 2]]", "[[-1, 0.5]]", R"([["a", 1]])", "[[0.5, null]]",
        "[[0.5, 0.5], [0.4, 0.6]]", "[[0.1, 0.5], [0.4, 0.2]]"}) {
    dir.write(kScoreCalibrationFile, std::string(R"({"points": )") + points + "}");
    EXPECT_EQ(test::catch_user_error([&] { ScoreCalibration::read(dir.path()); }).kind(),
              ErrorKind::kData)
        << points;
  }
}

}  // namespace rematch
