#include "kernels_peak.h"

#include <algorithm>
#include <ctime>
#include <cstdint>

#include "rollout/native/cpu_buffer.h"
#include "kernels/team.h"
#include "kernels/types.h"

namespace rematch::bench {
namespace {

typedef float Lanes __attribute__((vector_size(64)));

#if defined(__x86_64__)
#define REMATCH_WIDEST                                            \
  __attribute__((target_clones("avx512f", "avx2,fma", "default"), \
                 optimize("O3", "fp-contract=fast")))
#else
#define REMATCH_WIDEST
#endif

// @param ahead  floats that the program prefetches ahead; 0 leaves it to the processor
REMATCH_WIDEST float read_all(const float* data, int64_t size, int64_t ahead) {
  Lanes sums[4] = {};
  for (int64_t i = 0; i + 64 <= size; i += 64) {
    for (int j = 0; j < 4; ++j) {
      if (ahead > 0) __builtin_prefetch(data + i + j * 16 + ahead);
      sums[j] += *reinterpret_cast<const Lanes*>(data + i + j * 16);
    }
  }
  float sum = 0;
  for (const Lanes& part : sums) {
    for (int lane = 0; lane < 16; ++lane) sum += part[lane];
  }
  return sum;
}

typedef float Lanes4 __attribute__((vector_size(16)));
typedef float Lanes8 __attribute__((vector_size(32)));

// Twelve sums in registers: vectors wider than the processor's registers would spill to memory.
template <class Register>
[[gnu::always_inline]] inline float multiply(int64_t rounds) {
  constexpr int kLanes = sizeof(Register) / sizeof(float);
  Register sums[12], factor, addend;
  for (int lane = 0; lane < kLanes; ++lane) {
    factor[lane] = 0.999f;
    addend[lane] = 0.001f;
  }
  for (int i = 0; i < 12; ++i) sums[i] = addend * static_cast<float>(i + 1);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = sums[i] * factor + addend;
  }
  float sum = 0;
  for (const Register& part : sums) {
    for (int lane = 0; lane < kLanes; ++lane) sum += part[lane];
  }
  return sum;
}

struct Multiply {
  float (*run)(int64_t rounds);
  int lanes;
};

float multiply_portable(int64_t rounds) { return multiply<Lanes4>(rounds); }
#if defined(__x86_64__)
[[gnu::target("avx2,fma"), gnu::optimize("O3", "fp-contract=fast")]] float multiply_avx2(
    int64_t rounds) {
  return multiply<Lanes8>(rounds);
}
[[gnu::target("avx512f"), gnu::optimize("O3", "fp-contract=fast")]] float multiply_avx512(
    int64_t rounds) {
  return multiply<Lanes>(rounds);
}
#endif

Multiply widest_multiply() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_avx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_avx2, 8};
#endif
  return {multiply_portable, 4};
}

// With one thread, the time of other processes on the core does not count.
double now(int num_threads) {
  timespec time;
  clock_gettime(num_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Run>
double fastest(int num_threads, double budget, const Run& run) {
  double best = 1e30, spent = 0;
  while (spent < budget) {
    const double begin = now(num_threads);
    run();
    const double s = now(num_threads) - begin;
    best = std::min(best, s);
    spent += s;
  }
  return best;
}

}  // namespace

Peak measure_peak(int num_threads, double seconds) {
  const int64_t size = int64_t{64} << 20;
  constexpr int64_t kRounds = 500000;
  const CpuBuffer<float> memory(size);  // on large pages, as the engine keeps its weights
  std::fill_n(memory.data(), size, 1.0f);
  volatile float sink = 0;  // so that nothing is optimised away
  Peak peak;
  // Which of the ways is the fastest differs between processors and from minute to minute.
  for (const int64_t ahead : {0, 1024, 0, 1024}) {
    const double s = fastest(num_threads, seconds / 4, [&] {
      kernels::run_team(num_threads, [&](const kernels::Worker& worker) {
        const kernels::Range range = kernels::share(size, 128, worker.index, worker.count);
        sink = sink + read_all(memory.data() + range.begin, range.size(), ahead);
      });
    });
    peak.gb_per_s = std::max(peak.gb_per_s, static_cast<double>(size) * 4 / 1e9 / s);
  }
  const Multiply multiply = widest_multiply();
  const double s = fastest(num_threads, seconds, [&] {
    kernels::run_team(num_threads,
                      [&](const kernels::Worker&) { sink = sink + multiply.run(kRounds); });
  });
  peak.gflop_per_s = static_cast<double>(num_threads) * kRounds * 12 * multiply.lanes * 2 / 1e9 / s;
  return peak;
}

}  // namespace rematch::bench
