#include "model/kernels/team.h"

#include <gtest/gtest.h>

#include <vector>

namespace rematch {
namespace {

TEST(Team, RunsEveryWorkerOnce) {
  for (const int threads : {1, 2, 3}) {
    std::vector<int> runs(3, 0);
    int count = 0;
    kernels::run_team(threads, [&](const kernels::Worker& worker) {
      ++runs[static_cast<size_t>(worker.index)];
      if (worker.index == 0) count = worker.count;
    });
    EXPECT_LE(count, threads);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(runs[static_cast<size_t>(i)], i < count ? 1 : 0);
  }
}

TEST(Team, WaitsUntilEverybodyHasCome) {
  constexpr int kRounds = 500;
  std::vector<int> steps(3 * 16, 0);  // each worker's counter has its own cache line
  std::vector<int> behind(3, 0);
  kernels::run_team(3, [&](const kernels::Worker& worker) {
    for (int round = 1; round <= kRounds; ++round) {
      steps[static_cast<size_t>(worker.index) * 16] = round;
      worker.wait();
      for (int other = 0; other < worker.count; ++other) {
        if (steps[static_cast<size_t>(other) * 16] != round)
          ++behind[static_cast<size_t>(worker.index)];
      }
      worker.wait();
    }
  });
  EXPECT_EQ(behind, std::vector<int>(3, 0));
}

TEST(Team, SharesHaveEveryItemOnceInWholeUnits) {
  for (const int threads : {1, 2, 3}) {
    for (const int64_t size : {0, 1, 31, 32, 33, 100}) {
      std::vector<int> times(static_cast<size_t>(size), 0);
      kernels::run_team(threads, [&](const kernels::Worker& worker) {
        const kernels::Range items = worker.share(size, 8);
        EXPECT_TRUE(items.begin % 8 == 0 || items.size() == 0);
        for (int64_t i = items.begin; i < items.end; ++i) ++times[static_cast<size_t>(i)];
      });
      EXPECT_EQ(times, std::vector<int>(static_cast<size_t>(size), 1));
    }
  }
}

}  // namespace
}  // namespace rematch
