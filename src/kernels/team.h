#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "kernels/types.h"

namespace rematch::kernels {

/// Where all workers of a team wait for each other.
class Barrier {
 public:
  /// @param num_workers  how many arrive; the same at every call of a team
  void wait(int num_workers);

 private:
  alignas(64) std::atomic<int> num_waiting_{0};
  alignas(64) std::atomic<int> round_{0};
};

/// One thread of a team, inside run_team.
struct Worker {
  int index = 0;
  int count = 1;
  Barrier* barrier = nullptr;
  /// Returns when every worker has arrived; what they wrote before is visible to all.
  void wait() const {
    if (count > 1) barrier->wait(count);
  }

  /// This worker's part of `size` items, in whole runs of `unit`.
  Range share_of(int64_t size, int64_t unit) const { return share(size, unit, index, count); }
};

/// Runs `body` once on each of up to `num_threads` threads, the caller's among them, and returns
/// when all are done. They are OpenMP's, which ATen uses too, so that no two pools compete for the
/// cores. Inside, workers meet at barriers, which cost a fraction of a microsecond: a whole forward
/// pass is one call.
/// @param body  must not throw; may be called with a smaller Worker::count than asked for
void run_team(int num_threads, const std::function<void(const Worker&)>& body);

}  // namespace rematch::kernels
