#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "model/kernels/types.h"

namespace rematch::kernels {

/// Lets all workers of a team wait for each other.
class Barrier {
 public:
  /// @param num_workers  size of the team, the same in every call
  void wait(int num_workers);

 private:
  alignas(64) std::atomic<int> num_waiting_{0};
  alignas(64) std::atomic<int> round_{0};
};

/// One thread of a team inside run_team().
struct Worker {
  int index = 0;
  int count = 1;
  Barrier* barrier = nullptr;
  /// Returns when every worker has arrived; their earlier writes are then visible to all.
  void wait() const {
    if (count > 1) barrier->wait(count);
  }

  /// This worker's share of `size` items, in multiples of `unit`.
  Range share(int64_t size, int64_t unit = 1) const {
    return kernels::share(size, unit, index, count);
  }
};

/// Runs `body` once on each of up to `num_threads` threads, including the caller's, and returns
/// when all are done. The threads are OpenMP's, as in ATen, so only one pool uses the cores. A
/// barrier costs a fraction of a microsecond, so a whole forward pass is one call.
/// @param body  must not throw; Worker::count may be less than `num_threads`
void run_team(int num_threads, const std::function<void(const Worker&)>& body);

}  // namespace rematch::kernels
