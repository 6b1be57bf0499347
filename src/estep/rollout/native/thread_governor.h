#pragma once
#include <algorithm>
#include <cstdint>

namespace rematch {

/// Decides whether a step runs on all threads or on one. Threads that meet many times in a step lose more than they gain when other programs
/// want the cores: whoever waits for a thread that is not running waits for a slice of the scheduler's time. Answers do not depend on it.
///
/// On a quiet machine it does nothing. After a step in which threads were taken off their cores it tries one thread for a step, and stays
/// with it for a while if that is faster, longer each time.
class ThreadGovernor {
 public:
  /// What a step took.
  struct Observation {
    double seconds = 0;
    int64_t num_rows = 1;
    int64_t num_switches = 0;  ///< times a thread of the process left its core meanwhile
  };

  /// Threads of the next step. @param max_threads  those there are, ≥ 1
  int num_threads(int max_threads) {
    used_ = state_ == State::kAll ? max_threads : 1;
    return used_;
  }

  /// To be told about every step.
  void observe(const Observation& step) {
    const double cost = step.seconds / static_cast<double>(std::max<int64_t>(1, step.num_rows));
    if (num_left_ > 0) --num_left_;
    if (state_ == State::kTrying) {
      const bool is_faster = cost < crowded_cost_;
      state_ = is_faster ? State::kOne : State::kAll;
      num_left_ = patience_;
      patience_ = std::min(2 * patience_, kLongestPatience);
    } else if (state_ == State::kOne) {
      if (num_left_ == 0) state_ = State::kAll;
    } else if (used_ > 1) {
      const bool is_crowded = step.num_switches > kQuietSwitches * used_;
      if (!is_crowded) {
        if (num_left_ == 0) patience_ = kShortestPatience;
      } else if (num_left_ == 0) {
        crowded_cost_ = cost;
        state_ = State::kTrying;
      }
    }
  }

 private:
  enum class State { kAll, kTrying, kOne };
  static constexpr int64_t kQuietSwitches = 2;  // of each thread: at the start and the end of a step
  static constexpr int64_t kShortestPatience = 16, kLongestPatience = 1024;

  State state_ = State::kAll;
  int used_ = 1;
  double crowded_cost_ = 0;  ///< seconds a row of the step on all threads that was disturbed
  int64_t patience_ = kShortestPatience;
  int64_t num_left_ = 0;  ///< steps before the decision is looked at again
};

}  // namespace rematch
