#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/ranks/store_guard.h"

namespace c10d {
class Store;
}

namespace rematch {

/// Names the rank that is dead, stopped, cut off or stuck. Every rank writes a heartbeat to the
/// store each interval and reads the others'. Time is counted in this rank's own intervals: the
/// hosts' clocks may differ, and a process that was itself stopped must not blame the others.
class Watchdog {
 public:
  /// Progress of a rank, as its heartbeats report it.
  struct Progress {
    const char* phase = "start";
    int64_t num_moves = 0;    ///< grows whenever the rank finishes something
    bool is_waiting = false;  ///< for other ranks
  };
  /// Times are counted in intervals.
  struct Options {
    int rank = 0, size = 1;
    std::chrono::milliseconds interval{1000};
    int warn_after = 10;     ///< one warning about a silent rank
    int give_up_after = 30;  ///< a collective call with a silent rank never returns
    /// one warning about a stuck rank; later in phases where ranks recovered from longer pauses
    int warn_when_stuck = 30;
    int give_up_when_stuck = 1800;
    std::function<Progress()> progress;  ///< of this rank
    /// called with a warning, on the watchdog's thread
    std::function<void(const std::string&)> warn;
    /// called with the reason to end the process, on the watchdog's thread, which then ends
    std::function<void(const std::string&)> give_up;
    StoreGuard* guard = nullptr;  ///< hears of the store's answers
  };

  /// Writes the first beat.
  /// @param store  of the ranks; the watchdog opens its own connection
  Watchdog(const c10::intrusive_ptr<c10d::Store>& store, Options options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

  /// Waits until every rank has a watchdog, then starts to watch.
  /// @throws UserError (environment) naming the ranks that did not connect in time
  void start(std::chrono::seconds patience);
  /// Stops watching and tells the others that this rank exits.
  /// @param failed  with an error
  /// @param patience  time to wait for the others to exit (for the rank that hosts the store)
  void stop(bool failed, std::chrono::seconds patience = {});
  /// Describes the rank that made a collective call fail because it is silent or exited; empty if
  /// all ranks seem well. Takes up to six intervals, to distinguish a silent rank from a busy one.
  std::string explain();

 private:
  struct Peer;

  void write_beat(const char* exit);
  void read_beats();
  std::string find_problem();
  void watch(const std::stop_token& stop);

  Options options_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  int64_t num_beats_ = 0;
  std::vector<Peer> peers_;  // by rank, this one included
  int num_stuck_ = 0;        // consecutive intervals in which this rank waited and no rank moved
  bool warned_stuck_ = false;
  IntervalCount count_;
  std::map<std::string, int> longest_pause_;  // the most of them by phase, before ranks moved again
  bool has_stopped_ = false;
  std::jthread thread_;
};

}  // namespace rematch
