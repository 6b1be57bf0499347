#include "kernels/team.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace rematch::kernels {
namespace {

// A few hundred µs of waiting at full speed, more than shares of a phase differ by. Then somebody else has the other core: sleep, because
// who has slept is let in at once when it is woken.
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
  while (round_.load(std::memory_order_acquire) == round) round_.wait(round, std::memory_order_acquire);
}

void run_team(int num_threads, const std::function<void(const Worker&)>& body) {
  Barrier barrier;
#ifdef _OPENMP
  if (num_threads > 1) {
#pragma omp parallel num_threads(num_threads)
    body({omp_get_thread_num(), omp_get_num_threads(), &barrier});
    return;
  }
#endif
  static_cast<void>(num_threads);
  body({0, 1, &barrier});
}

}  // namespace rematch::kernels
