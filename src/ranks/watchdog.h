#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace c10d {
class Store;
}

namespace rematch {

/// Sees that the other ranks live and go on. Every rank writes a beat into the store each interval
/// and reads those of all others, so that a rank that is killed, stopped or cut off is named on
/// every survivor, whoever it is; so is one that lives and stands still while this one waits. Only
/// its own clock counts: hosts may disagree on the time.
class Watchdog {
 public:
  /// How far a rank has come.
  struct Progress {
    int64_t num_moves = 0;    ///< grows with whatever it finishes
    bool is_waiting = false;  ///< for other ranks
  };
  struct Options {
    int rank = 0, size = 1;
    std::chrono::milliseconds interval{1000};
    std::chrono::milliseconds warn_after{10000};  ///< one line about a silent rank
    /// then the process ends: no call of a group with a silent rank ever returns
    std::chrono::milliseconds give_up_after{30000};
    /// one line about a rank that stands still; later when ranks often stand longer
    std::chrono::milliseconds warn_when_stuck{30000};
    std::chrono::milliseconds give_up_when_stuck{1800000};  ///< then the process ends
    std::function<const char*()> phase;                     ///< what this rank is doing
    std::function<Progress()> progress;                     ///< empty: no rank is taken for stuck
    /// takes that line; on the watchdog's thread
    std::function<void(const std::string&)> warn;
    /// does not return in the program; on the watchdog's thread
    std::function<void(const std::string&)> give_up;
  };

  /// Writes the first beat. @param store  of the ranks; a connection of its own is made
  Watchdog(const c10::intrusive_ptr<c10d::Store>& store, Options options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

  /// Returns when every rank has a watchdog. @throws UserError (environment) naming the ranks that
  /// have not come in time
  void wait_for_first_beats(std::chrono::milliseconds patience);
  /// Begins to watch. Every rank's watchdog exists by now.
  void start();
  /// Ends the watching; the others see this rank as one that left. @param failed  with an error
  void stop(bool failed);
  /// Waits until every other rank has left, but no longer than `patience` (rank 0, when it hosts
  /// the store).
  void wait_for_others(std::chrono::milliseconds patience);
  /// After a call of the group has failed: which rank is silent or has left with an error; empty
  /// when all seem well. Takes as long as a silent rank needs to be told from a busy one, some four
  /// intervals.
  std::string explain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
