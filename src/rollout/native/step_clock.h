#pragma once
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>

namespace rematch {

/// Sets ATen's thread count for the lifetime of this object.
class ThreadCountGuard {
 public:
  explicit ThreadCountGuard(int num_threads) : previous_(at::get_num_threads()) {
    if (num_threads != previous_) at::set_num_threads(num_threads);
  }
  ~ThreadCountGuard() {
    if (at::get_num_threads() != previous_) at::set_num_threads(previous_);
  }
  ThreadCountGuard(const ThreadCountGuard&) = delete;
  ThreadCountGuard& operator=(const ThreadCountGuard&) = delete;

 private:
  int previous_;
};

/// Measures the time since its construction, and the context switches of the process.
class StepClock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  int64_t num_switches() const { return count_switches() - switches_at_begin_; }

 private:
  static int64_t count_switches() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int64_t switches_at_begin_ = count_switches();
};

}  // namespace rematch
