#include "model/kernels/team.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace rematch::kernels {
namespace {

// Spin for a few hundred µs, longer than the workers' shares differ. A longer wait means that
// another process occupies a worker's core. Then sleep: a thread that slept is scheduled at once
// when it is woken.
constexpr int kSpins = 20000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

}  // namespace

void Barrier::wait(int num_workers) {
  const int round = round_.load(std::memory_order_relaxed);
  if (num_waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_workers) {
    num_waiting_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    round_.notify_all();
    return;
  }
  for (int spins = 0; spins < kSpins; ++spins) {
    if (round_.load(std::memory_order_acquire) != round) return;
    pause();
  }
  while (round_.load(std::memory_order_acquire) == round)
    round_.wait(round, std::memory_order_acquire);
}

}  // namespace rematch::kernels
