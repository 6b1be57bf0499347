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

/// How much of each worker's share is taken, phase by phase.
class Deck {
 public:
  static constexpr int kMostWorkers = 64;

  /// Begins the next phase for a worker. @returns its number, for take()
  int begin(int worker);
  /// Place of the next of the `size` units in a worker's share: the first that is left for itself,
  /// the last one for others; -1 when none is left.
  int64_t take(int phase, int owner, bool for_itself, int64_t size);

 private:
  struct alignas(64) Hand {
    // from the front, and from the back · 2^32; of this phase and of the next
    std::atomic<uint64_t> taken[2] = {};
    int phase = 0;  // its owner's own
  };
  Hand hands_[kMostWorkers];
};

/// One thread of a team, inside run_team.
struct Worker {
  int index = 0;
  int count = 1;
  Barrier* barrier = nullptr;
  Deck* deck = nullptr;
  /// Returns when every worker has arrived; what they wrote before is visible to all.
  void wait() const {
    if (count > 1) barrier->wait(count);
  }

  /// Calls body(Range) until all of `size` items are dealt out among the workers in runs of `unit`:
  /// first this worker's share() from the front, then what others have not reached, from their
  /// ends. So others wait only for the last run of a slow worker. Every worker must make the same
  /// call, and wait() before the next one.
  template <class Body>
  void deal(int64_t size, int64_t unit, const Body& body) const {
    if (count == 1 || count > Deck::kMostWorkers) {
      const Range mine = share(size, unit, index, count);
      if (mine.size() > 0) body(mine);
      return;
    }
    const int phase = deck->begin(index);
    for (int i = 0; i < count; ++i) {
      const int owner = (index + i) % count;
      const Range range = share(size, unit, owner, count);
      const int64_t num_units = (range.size() + unit - 1) / unit;
      while (true) {
        const int64_t place = deck->take(phase, owner, owner == index, num_units);
        if (place < 0) break;
        const int64_t begin = range.begin + place * unit;
        body(Range{begin, begin + unit < range.end ? begin + unit : range.end});
      }
    }
  }
};

/// Runs `body` once on each of up to `num_threads` threads, the caller's among them, and returns
/// when all are done. They are OpenMP's, which ATen uses too, so that no two pools compete for the
/// cores. Inside, workers meet at barriers, which cost a fraction of a microsecond: a whole forward
/// pass is one call.
/// @param body  must not throw; may be called with a smaller Worker::count than asked for
void run_team(int num_threads, const std::function<void(const Worker&)>& body);

}  // namespace rematch::kernels
