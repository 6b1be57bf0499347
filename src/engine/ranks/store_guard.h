#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace rematch {

/// Counts a thread's intervals. One that a slow machine stretches counts for up to three, so that
/// ranks which swap do not wait for each other without an end.
class IntervalCount {
 public:
  /// Intervals since the last call.
  int next(std::chrono::milliseconds interval);

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Ends the process when the ranks' store has not answered for some intervals. A call of the store
/// whose process is stopped never returns, whatever its timeout.
class StoreGuard {
 public:
  struct Options {
    std::string host;  ///< which process hosts the store, and where
    int limit = 30;    ///< in intervals
    std::chrono::milliseconds interval{1000};
    /// called with the reason, on the guard's thread, which then ends
    std::function<void(const std::string&)> give_up;
  };
  explicit StoreGuard(Options options);
  /// The store has answered a call.
  /// @param heartbeat  the newest one of rank 0, if this answer was one
  void answered(const std::string& heartbeat = {});

 private:
  void watch(const std::stop_token& stop);

  Options options_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  int num_silent_ = 0;
  std::string heartbeat_;
  std::jthread thread_;
};

}  // namespace rematch
