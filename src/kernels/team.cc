#include "kernels/team.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace rematch::kernels {
namespace {

// Spin for a few hundred µs, longer than the shares of a phase differ by. After that another
// process occupies the core of a worker: sleep, because a thread that has slept is scheduled at
// once when it is woken.
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

int Deck::begin(int worker) {
  Hand& hand = hands_[worker];
  const int phase = hand.phase;
  hand.phase = 1 - phase;
  // All workers are done with the previous phase, which used it, and will wait for this worker
  // before the next phase does.
  hand.taken[1 - phase].store(0, std::memory_order_relaxed);
  return phase;
}

int64_t Deck::take(int phase, int owner, bool for_itself, int64_t size) {
  std::atomic<uint64_t>& taken = hands_[owner].taken[phase];
  uint64_t now = taken.load(std::memory_order_relaxed);
  while (true) {
    const auto front = static_cast<int64_t>(now & 0xFFFFFFFF),
               back = static_cast<int64_t>(now >> 32);
    if (front + back >= size) return -1;
    const uint64_t next = now + (for_itself ? 1 : uint64_t{1} << 32);
    // Relaxed is sufficient: the wait() that follows makes the results visible to all.
    if (taken.compare_exchange_weak(now, next, std::memory_order_relaxed))
      return for_itself ? front : size - 1 - back;
  }
}

}  // namespace rematch::kernels
