#include "learn/train/step_metrics.h"

#include <gtest/gtest.h>

#include <map>

#include "support/ranks.h"

namespace rematch {

TEST(StepMetrics, AreInWindowOrderForAnyNumberOfRanks) {
  // Micro-batches of 2, 2, 2, 2 and 1 samples: 0 1 | 2 3 | 4 5 | 6 7 | 8, distributed in turn.
  const std::vector<std::vector<double>> micro_batches{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8}};
  for (const int size : {2, 3, 4, 6}) {
    test::run_ranks(size, [&](Group& group) {
      StepMetrics bag;
      for (size_t i = static_cast<size_t>(group.rank()); i < micro_batches.size();
           i += static_cast<size_t>(size)) {
        bag.micro_batches.push_back(std::ssize(micro_batches[i]));
        bag.add("packing/post_rollout_fill", static_cast<double>(i));
        for (const double sample : micro_batches[i]) bag.add("rollout/gt_objects", sample);
      }
      bag.add("rollout/is_rollout", 1);
      if (group.rank() == 0) bag.add("loss", 0.1 + 0.2);
      bag.add("time/step_s", group.rank());
      const MetricsBag all = gather_metrics(group, bag);
      if (group.rank() != 0) return;
      EXPECT_EQ(all.values("rollout/gt_objects"), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}))
          << size;
      EXPECT_EQ(all.values("packing/post_rollout_fill"), (std::vector<double>{0, 1, 2, 3, 4}))
          << size;
      EXPECT_EQ(all.values("loss"), (std::vector<double>{0.1 + 0.2}));
      EXPECT_EQ(all.values("rollout/is_rollout").back(), 1);
      EXPECT_EQ(all.values("time/step_s"), (std::vector<double>{static_cast<double>(size - 1)}))
          << "the slowest rank's";
    });
  }
}

TEST(StepMetrics, ComeFromRankZeroForAReusedWindow) {
  test::run_ranks(2, [](Group& group) {
    StepMetrics bag;
    bag.add("rollout/buffer_reuse", 1);
    bag.add("rollout/buffer_completed_steps", 2);
    const MetricsBag all = gather_metrics(group, bag);
    EXPECT_EQ(all.all(), bag.all());
  });
}

}  // namespace rematch
