#pragma once
#include <algorithm>
#include <cstdint>

namespace rematch {

/// Decides whether a step runs on all threads or on one. When other programs use the cores, threads
/// that synchronise often lose more than they gain: waiting for a descheduled thread costs a whole
/// scheduler time slice. Answers do not depend on the decision.
///
/// On a quiet machine all threads are used. After several steps with many context switches it tries
/// one thread for one step. If that is faster, it uses one thread for a number of steps, which
/// doubles each time until the machine is quiet.
class ThreadGovernor {
 public:
  /// The duration of a step.
  struct Observation {
    double seconds = 0;
    int64_t num_rows = 1;
    int64_t num_switches = 0;  ///< times a thread of the process left its core
  };

  /// Number of threads of the next step. @param max_threads  available threads, ≥ 1
  int num_threads(int max_threads) {
    used_ = state_ == State::kAll ? max_threads : 1;
    return used_;
  }

  /// Call it after every step.
  void observe(const Observation& step) {
    if (num_left_ > 0) --num_left_;
    if (state_ == State::kTrying) {
      state_ = State::kAll;
      // steps of different sizes are not comparable: rows are cheaper in a large step
      if (!is_about_as_large(step, crowded_)) return;
      if (step.seconds * static_cast<double>(crowded_.num_rows) <
          crowded_.seconds * static_cast<double>(step.num_rows)) {
        state_ = State::kOne;
      }
      num_left_ = patience_;
      patience_ = std::min(2 * patience_, kLongestPatience);
    } else if (state_ == State::kOne) {
      if (num_left_ == 0) state_ = State::kAll;
    } else if (used_ > 1) {
      if (static_cast<double>(step.num_switches) <=
          kQuietSwitches * used_ + kQuietSwitchesPerSecond * step.seconds) {
        num_crowded_ = 0;
        patience_ = kShortestPatience;
      } else if (++num_crowded_ >= kCrowdedSteps && num_left_ == 0) {
        crowded_ = step;
        state_ = State::kTrying;
      }
    }
  }

 private:
  enum class State { kAll, kTrying, kOne };

  static bool is_about_as_large(const Observation& a, const Observation& b) {
    return 4 * a.num_rows >= 3 * b.num_rows && 4 * b.num_rows >= 3 * a.num_rows;
  }

  // per thread: at the start and the end of a step
  static constexpr int64_t kQuietSwitches = 2;
  static constexpr double kQuietSwitchesPerSecond = 200.0;  // the system's own work
  // consecutive steps; more than one, because the first step of a process waits for its memory
  static constexpr int kCrowdedSteps = 2;
  static constexpr int64_t kShortestPatience = 16, kLongestPatience = 1024;

  State state_ = State::kAll;
  int used_ = 1;
  int num_crowded_ = 0;  ///< consecutive steps so far
  Observation crowded_;  ///< the disturbed step on all threads
  int64_t patience_ = kShortestPatience;
  int64_t num_left_ = 0;  ///< steps until the decision is reviewed
};

}  // namespace rematch
