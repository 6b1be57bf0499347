#include "learn/train/run_health.h"

#include <gtest/gtest.h>

#include "state_text.h"

namespace rematch {
namespace {

/// An evaluation's entry of the log history.
/// @param precision  of 10 000 predictions
LogEntry evaluated(int64_t step, double precision) {
  return {.step = step,
          .values = {{"eval_rollout_precision", precision},
                     {"eval_rollout_label_accuracy", 0.5},
                     {"eval_rollout_duplicates", 0.0},
                     {"eval_rollout_parse_truncated_rate", 0.0},
                     {"eval_rollout_parse_malformed_rate", 0.0},
                     {"eval_rollout_pred_per_gt", 1.0},
                     {"eval_rollout_pred_objects", 10000.0}}};
}

MetricValues values_of(const LogEntry& entry) { return {entry.values.begin(), entry.values.end()}; }

}  // namespace

TEST(RunHealth, ComparesWithTheFirstEvaluationAndNotWithTheLastOne) {
  const std::vector<LogEntry> history{
      {.step = 1, .values = {{"loss", 3.0}}}, evaluated(10, 0.9), evaluated(20, 0.4)};
  const std::optional<Health> health =
      health_since_start(history, values_of(evaluated(30, 0.6)), 1000);
  ASSERT_TRUE(health);
  EXPECT_EQ(health->since_step, 10);
  ASSERT_EQ(health->harms.size(), 1u);
  EXPECT_EQ(health->harms[0].before, 0.9);
  EXPECT_EQ(health->harms[0].now, 0.6);
  EXPECT_FALSE(health_since_start({history[0]}, values_of(evaluated(30, 0.6)), 1000))
      << "the first evaluation is the reference";
}

TEST(RunHealth, AResumedRunComparesWithTheSameNumbers) {
  TrainerState state;
  state.progress.log_history = {evaluated(0, 0.91234567890123456), evaluated(20, 0.4)};
  const TrainerState resumed = TrainerState::from_json(to_json(state), "trainer_state.json");
  const auto now = values_of(evaluated(30, 0.6));
  EXPECT_EQ(health_since_start(resumed.progress.log_history, now, 1000)->harms[0].before,
            0.91234567890123456);
  EXPECT_EQ(health_since_start(resumed.progress.log_history, now, 1000)->lines({}),
            health_since_start(state.progress.log_history, now, 1000)->lines({}));
}

TEST(RunHealth, IsLoggedAsTheNumberOfHarmsAndEveryChange) {
  const MetricValues logged = health_metrics(
      *health_since_start({evaluated(0, 0.75)}, values_of(evaluated(30, 0.5)), 1000));
  const MetricValues expected{{"health/worse", 1},          {"health/precision", -0.25},
                              {"health/label_accuracy", 0}, {"health/duplicates", 0},
                              {"health/truncated", 0},      {"health/malformed", 0},
                              {"health/pred_per_gt", 0}};
  EXPECT_EQ(logged, expected);
}

TEST(RunHealth, StartsAgainOverAnotherSet) {
  LogEntry first = evaluated(0, 0.9), second = evaluated(10, 0.3);
  first.eval_set = "a";
  second.eval_set = "b";
  const auto now = values_of(evaluated(20, 0.2));
  EXPECT_FALSE(health_since_start({first}, now, 1000, "b"));
  EXPECT_EQ(health_since_start({first, second}, now, 1000, "b")->since_step, 10);
  EXPECT_EQ(health_since_start({first, second}, now, 1000, "a")->since_step, 0);
}

}  // namespace rematch
