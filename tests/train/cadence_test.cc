#include "learn/train/cadence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rematch {
namespace {

/// Epochs of equal length.
Cadence even(const CadenceSettings& settings, int64_t steps_per_epoch) {
  return {settings, [steps_per_epoch](int64_t) { return steps_per_epoch; }};
}

}  // namespace

TEST(Cadence, MaxStepsBeatsEpochs) {
  EXPECT_EQ(even({.max_steps = 7, .num_train_epochs = 100}, 10).total_steps(), 7);
  EXPECT_EQ(even({.num_train_epochs = 2.5}, 10).total_steps(), 25);
  EXPECT_EQ(even({.num_train_epochs = 0.01}, 10).total_steps(), 1);
}

TEST(Cadence, LogsEveryNthStepTheFirstAndTheLast) {
  const Cadence cadence =
      even({.max_steps = 25, .logging_steps = 10, .logging_first_step = true}, 100);
  std::vector<int64_t> logged;
  for (int64_t step = 1; step <= 25; ++step) {
    if (cadence.after_step(step, false).log) logged.push_back(step);
  }
  EXPECT_EQ(logged, (std::vector<int64_t>{1, 10, 20, 25}));
}

TEST(Cadence, SavesAndEvaluatesByStepsOrByEpoch) {
  const Cadence steps = even({.max_steps = 10,
                              .eval_when = When::kSteps,
                              .eval_steps = 4,
                              .save_when = When::kSteps,
                              .save_steps = 5},
                             3);
  EXPECT_TRUE(steps.after_step(4, false).evaluate);
  EXPECT_FALSE(steps.after_step(3, true).evaluate);
  EXPECT_TRUE(steps.after_step(5, false).save);
  const Cadence epochs =
      even({.max_steps = 10, .eval_when = When::kEpoch, .save_when = When::kEpoch}, 3);
  EXPECT_TRUE(epochs.after_step(3, true).evaluate);
  EXPECT_TRUE(epochs.after_step(3, true).save);
  EXPECT_FALSE(epochs.after_step(4, false).save);
}

TEST(Cadence, WritesAFinalCheckpointUnlessSaveLastEpochIsOff) {
  const CadenceSettings base{.max_steps = 10, .save_when = When::kSteps, .save_steps = 500};
  EXPECT_TRUE(even(base, 5).after_step(10, true).save);
  CadenceSettings without = base;
  without.save_last_epoch = false;
  EXPECT_FALSE(even(without, 5).after_step(10, true).save);
  CadenceSettings never = base;
  never.save_when = When::kNever;
  EXPECT_TRUE(even(never, 5).after_step(10, true).save);
  EXPECT_FALSE(even(never, 5).after_step(5, true).save);
}

TEST(Cadence, DelaysTheFirstCheckpoint) {
  const Cadence cadence = even({.max_steps = 100,
                                .save_when = When::kSteps,
                                .save_steps = 10,
                                .save_delay_steps = 25,
                                .save_delay_epochs = 4},
                               10);
  EXPECT_FALSE(cadence.after_step(20, false).save);
  EXPECT_FALSE(cadence.after_step(30, false).save);
  EXPECT_TRUE(cadence.after_step(40, false).save);
}

// Epochs of 10, 7, 12, 10, 7, 12 … steps.
int64_t uneven(int64_t epoch) {
  constexpr int64_t kSteps[] = {10, 7, 12};
  return kSteps[epoch % 3];
}

TEST(Cadence, CountsStepsOfUnevenEpochs) {
  EXPECT_EQ(Cadence({.num_train_epochs = 2}, uneven).total_steps(), 17);
  EXPECT_EQ(Cadence({.num_train_epochs = 4}, uneven).total_steps(), 39);
  // 3.5 of the second epoch's 7, rounded up
  EXPECT_EQ(Cadence({.num_train_epochs = 1.5}, uneven).total_steps(), 14);
  EXPECT_EQ(Cadence({.num_train_epochs = 2.25}, uneven).total_steps(), 20);
  EXPECT_EQ(Cadence({.num_train_epochs = 0.1}, uneven).total_steps(), 1);
}

TEST(Cadence, RoundsFractionalEpochsUp) {
  for (const double num_train_epochs : {0.1, 0.3, 1.1, 2.1, 2.5, 3.0, 3.3, 7.7, 10.01}) {
    for (const int64_t steps : {1, 3, 10, 33, 100, 1001}) {
      EXPECT_EQ(even({.num_train_epochs = num_train_epochs}, steps).total_steps(),
                static_cast<int64_t>(std::ceil(num_train_epochs * static_cast<double>(steps))))
          << num_train_epochs << " epochs of " << steps;
    }
  }
}

TEST(Cadence, EpochIsWholeAtItsLastStepAndMonotone) {
  const Cadence cadence({.num_train_epochs = 6}, uneven);
  EXPECT_EQ(cadence.epoch_at(0), 0.0);
  EXPECT_EQ(cadence.epoch_at(5), 0.5);
  EXPECT_EQ(cadence.epoch_at(23), 2.5);
  int64_t end = 0;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    end += uneven(epoch);
    EXPECT_EQ(cadence.epoch_at(end), static_cast<double>(epoch + 1));
  }
  EXPECT_EQ(cadence.total_steps(), end);
  for (int64_t step = 1; step <= end; ++step)
    EXPECT_LT(cadence.epoch_at(step - 1), cadence.epoch_at(step)) << step;
}

TEST(Cadence, EvenEpochsAreReportedAsStepsOverSteps) {
  const Cadence cadence = even({.max_steps = 1000}, 7);
  for (int64_t step = 0; step <= 1000; ++step)
    EXPECT_EQ(cadence.epoch_at(step), static_cast<double>(step) / 7.0);
}

TEST(Cadence, WithMaxStepsLooksAtNoLaterEpoch) {
  std::vector<int64_t> asked;
  const Cadence cadence({.max_steps = 14, .num_train_epochs = 1000}, [&](int64_t epoch) {
    asked.push_back(epoch);
    return uneven(epoch);
  });
  EXPECT_TRUE(asked.empty());
  cadence.epoch_at(10);
  EXPECT_EQ(asked, (std::vector<int64_t>{0}));
  cadence.epoch_at(11);
  EXPECT_EQ(asked, (std::vector<int64_t>{0, 1}));
}

TEST(Cadence, DelaysTheFirstCheckpointByUnevenEpochs) {
  const Cadence cadence(
      {.max_steps = 100, .save_when = When::kSteps, .save_steps = 1, .save_delay_epochs = 2},
      uneven);
  EXPECT_FALSE(cadence.may_save(16));
  EXPECT_TRUE(cadence.may_save(17));
}

}  // namespace rematch
