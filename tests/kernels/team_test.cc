#include "kernels/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
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
  std::vector<int> steps(3 * 16, 0);  // a worker's counter has a cache line of its own
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

TEST(Team, DealsEveryItemOnceInWholeUnits) {
  for (const int threads : {1, 2, 3}) {
    std::vector<std::atomic<int>> times(100);
    kernels::run_team(threads, [&](const kernels::Worker& worker) {
      for (int phase = 0; phase < 300; ++phase) {
        for (const int64_t size : {0, 1, 31, 32, 33, 100}) {
          worker.deal(size, 8, [&](kernels::Range items) {
            EXPECT_TRUE(items.begin % 8 == 0 && (items.end % 8 == 0 || items.end == size))
                << items.begin << " to " << items.end;
            for (int64_t i = items.begin; i < items.end; ++i) ++times[static_cast<size_t>(i)];
          });
          worker.wait();
          if (worker.index == 0) {
            for (int64_t i = 0; i < 100; ++i)
              EXPECT_EQ(times[static_cast<size_t>(i)].exchange(0), i < size ? 1 : 0)
                  << i << " of " << size;
          }
          worker.wait();
        }
      }
    });
  }
}

TEST(Team, TakesOverWhatASlowWorkerHasNotBegun) {
  std::vector<std::atomic<int>> done_by(2);
  int count = 0;
  kernels::run_team(2, [&](const kernels::Worker& worker) {
    if (worker.index == 0) count = worker.count;
    worker.deal(20, 1, [&](kernels::Range) {
      ++done_by[static_cast<size_t>(worker.index)];
      if (worker.index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    worker.wait();
  });
  EXPECT_EQ(done_by[0] + done_by[1], 20);
  EXPECT_LT(done_by[0], count == 2 ? 10 : 21);
}

}  // namespace
}  // namespace rematch
