#include "learn/train/time_split.h"

#include <gtest/gtest.h>

namespace rematch {

TEST(TimeSplit, GivesTheSharesOfARunInTheOrderOfAStep) {
  TimeSplit split;
  EXPECT_EQ(split.text(10), "");
  for (int step = 0; step < 2; ++step) {
    MetricsBag metrics;
    metrics.add("time/backward_s", 1);
    metrics.add("time/rollout_generate_s", 2);
    metrics.add("time/rollout_generate_s", 0.5);
    metrics.add("time/optimizer_s", 0.001);
    metrics.add("time/step_s", 4);
    split.add(metrics);
  }
  EXPECT_EQ(split.text(10), "rollouts 50 %, backward 20 %, other 10 %, evaluation and saving 20 %");
}

TEST(TimeSplit, AddsUpToTheRunWithSeveralRanks) {
  TimeSplit split;
  MetricsBag slowest;  // of each part another rank's
  slowest.add("time/forward_s", 6);
  slowest.add("time/backward_s", 4);
  slowest.add("time/step_s", 8);
  split.add(slowest);
  EXPECT_EQ(split.text(10), "forward 48 %, backward 32 %, evaluation and saving 20 %");
  EXPECT_EQ(split.text(7.9), "forward 60 %, backward 40 %");
}

}  // namespace rematch
