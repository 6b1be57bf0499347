#include "train/cadence.h"

#include <gtest/gtest.h>

namespace rematch {

TEST(Cadence, MaxStepsBeatsEpochs) {
  EXPECT_EQ(Cadence({.max_steps = 7, .num_train_epochs = 100}, 10).total_steps(), 7);
  EXPECT_EQ(Cadence({.num_train_epochs = 2.5}, 10).total_steps(), 25);
  EXPECT_EQ(Cadence({.num_train_epochs = 0.01}, 10).total_steps(), 1);
}

TEST(Cadence, LogsEveryNthTheFirstWhenAskedAndTheLast) {
  const Cadence cadence({.max_steps = 25, .logging_steps = 10, .logging_first_step = true}, 100);
  std::vector<int64_t> logged;
  for (int64_t step = 1; step <= 25; ++step) {
    if (cadence.after_step(step, false).log) logged.push_back(step);
  }
  EXPECT_EQ(logged, (std::vector<int64_t>{1, 10, 20, 25}));
}

TEST(Cadence, SavesAndEvaluatesByStepsOrByEpoch) {
  const Cadence steps({.max_steps = 10, .eval_when = When::kSteps, .eval_steps = 4, .save_when = When::kSteps, .save_steps = 5}, 3);
  EXPECT_TRUE(steps.after_step(4, false).evaluate);
  EXPECT_FALSE(steps.after_step(3, true).evaluate);
  EXPECT_TRUE(steps.after_step(5, false).save);
  const Cadence epochs({.max_steps = 10, .eval_when = When::kEpoch, .save_when = When::kEpoch}, 3);
  EXPECT_TRUE(epochs.after_step(3, true).evaluate);
  EXPECT_TRUE(epochs.after_step(3, true).save);
  EXPECT_FALSE(epochs.after_step(4, false).save);
}

TEST(Cadence, WritesAFinalCheckpointUnlessSaveLastEpochIsOff) {
  const CadenceOptions base{.max_steps = 10, .save_when = When::kSteps, .save_steps = 500};
  EXPECT_TRUE(Cadence(base, 5).after_step(10, true).save);
  CadenceOptions without = base;
  without.save_last_epoch = false;
  EXPECT_FALSE(Cadence(without, 5).after_step(10, true).save);
  CadenceOptions never = base;
  never.save_when = When::kNever;
  EXPECT_TRUE(Cadence(never, 5).after_step(10, true).save);
  EXPECT_FALSE(Cadence(never, 5).after_step(5, true).save);
}

TEST(Cadence, DelaysTheFirstCheckpoint) {
  const Cadence cadence({.max_steps = 100, .save_when = When::kSteps, .save_steps = 10, .save_delay_steps = 25, .save_delay_epochs = 4}, 10);
  EXPECT_FALSE(cadence.after_step(20, false).save);
  EXPECT_FALSE(cadence.after_step(30, false).save);
  EXPECT_TRUE(cadence.after_step(40, false).save);
}

}  // namespace rematch
