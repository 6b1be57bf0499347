#pragma once
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>

namespace rematch {

/// How ATen's thread count is set while this lives.
class ThreadsFor {
 public:
  explicit ThreadsFor(int num_threads) : former_(at::get_num_threads()) {
    if (num_threads != former_) at::set_num_threads(num_threads);
  }
  ~ThreadsFor() {
    if (at::get_num_threads() != former_) at::set_num_threads(former_);
  }
  ThreadsFor(const ThreadsFor&) = delete;
  ThreadsFor& operator=(const ThreadsFor&) = delete;

 private:
  int former_;
};

/// The duration of some work from here on, and how often threads of the process leave their cores
/// meanwhile.
class StepClock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  int64_t num_switches() const { return switches_so_far() - switches_at_begin_; }

 private:
  static int64_t switches_so_far() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int64_t switches_at_begin_ = switches_so_far();
};

}  // namespace rematch
