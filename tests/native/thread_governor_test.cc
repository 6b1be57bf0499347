#include "rollout/native/thread_governor.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

// Steps of one row on a machine of two threads. @return how many of them ran on one thread
int on_one_thread(ThreadGovernor& governor, int num_steps, double ms_on_all, double ms_on_one,
                  int64_t num_switches_on_all) {
  int num_single = 0;
  for (int i = 0; i < num_steps; ++i) {
    const bool single = governor.num_threads(2) == 1;
    governor.observe({.seconds = 1e-3 * (single ? ms_on_one : ms_on_all),
                      .num_switches = single ? 1 : num_switches_on_all});
    num_single += single ? 1 : 0;
  }
  return num_single;
}

}  // namespace

TEST(ThreadGovernor, LeavesAQuietMachineAlone) {
  ThreadGovernor governor;
  EXPECT_EQ(on_one_thread(governor, 10000, 1.0, 2.0, 3), 0);
}

TEST(ThreadGovernor, TurnsToOneThreadWhereAllWaitForEachOther) {
  ThreadGovernor governor;
  EXPECT_GT(on_one_thread(governor, 1000, 20.0, 1.0, 30), 985);
}

TEST(ThreadGovernor, StaysWithAllThreadsWhereTheyAreFasterAllTheSame) {
  ThreadGovernor governor;
  EXPECT_LT(on_one_thread(governor, 1000, 1.5, 2.0, 30), 15);
}

TEST(ThreadGovernor, ComesBackWhenTheMachineIsQuietAgain) {
  ThreadGovernor governor;
  on_one_thread(governor, 300, 20.0, 1.0, 30);
  on_one_thread(governor, 1100, 0.5, 1.0, 0);
  EXPECT_EQ(on_one_thread(governor, 1000, 0.5, 1.0, 0), 0);
}

TEST(ThreadGovernor, TakesNoHeedOfOneCrowdedStep) {
  ThreadGovernor governor;
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(on_one_thread(governor, 1, 20.0, 1.0, i % 2 == 0 ? 30 : 0), 0);
}

TEST(ThreadGovernor, KnowsThatLongStepsAreDisturbedMoreOften) {
  ThreadGovernor governor;
  EXPECT_EQ(on_one_thread(governor, 100, 1000.0, 1.0, 100), 0);
}

TEST(ThreadGovernor, ComparesStepsByRow) {
  ThreadGovernor governor;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(governor.num_threads(2), 2);
    governor.observe({.seconds = 0.010, .num_rows = 40, .num_switches = 30});
  }
  EXPECT_EQ(governor.num_threads(2), 1);
  governor.observe({.seconds = 0.009, .num_rows = 32});
  EXPECT_EQ(governor.num_threads(2), 2) << "less time, but more for each row";
}

TEST(ThreadGovernor, LearnsNothingFromStepsOfAnotherSize) {
  ThreadGovernor governor;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(governor.num_threads(2), 2);
    governor.observe({.seconds = 0.01, .num_rows = 40, .num_switches = 30});
  }
  EXPECT_EQ(governor.num_threads(2), 1);
  governor.observe({.seconds = 0.1, .num_rows = 512});
  EXPECT_EQ(governor.num_threads(2), 2) << "a prompt's row takes less than an answer's anyway";
}

TEST(ThreadGovernor, HasNoChoiceWithOneThread) {
  ThreadGovernor governor;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(governor.num_threads(1), 1);
    governor.observe({.seconds = 1, .num_switches = 100});
  }
  EXPECT_EQ(governor.num_threads(4), 4);
}

}  // namespace rematch
