#include "train/time_split.h"

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

}  // namespace rematch
