#pragma once
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ranks/group.h"
#include "ranks/watchdog.h"
#include "ranks/world.h"
#include "settings/ranks.h"

namespace rematch {

/// Membership of this process in its world: connected to the other ranks and watched, from
/// construction to destruction. With one rank, the group of a process that is alone.
class Ranks {
 public:
  struct Options {
    /// how long the ranks wait for one that makes no progress (`training.ddp_timeout`)
    std::chrono::seconds patience{1800};
    DdpBackend backend = DdpBackend::kGloo;
    std::string device;  ///< of this rank; kNccl needs a GPU
    /// takes a warning about another rank, on the watchdog's thread
    std::function<void(const std::string&)> warn;
    /// Another rank is lost: ends the process on the watchdog's thread, without destructors,
    /// because threads wait in calls that never return.
    std::function<void(const std::string& problem)> lost;
  };
  /// @throws UserError (environment) when the ranks do not meet, or are programs of different
  /// builds; (config) for a backend that this build or device does not have
  Ranks(const World& world, const Options& options);
  /// Rank 0 leaves last when it hosts the store.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  Group& group() { return group_ ? *group_ : alone(); }

 private:
  Watchdog::Progress progress() const;
  void connect(const Options& options);

  World world_;
  int num_exceptions_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Group> group_;
  std::atomic<bool> is_connected_ = false;  // `group_` is there, for the watchdog's thread too
};

/// Refuses several ranks where a command is one process. @throws UserError (environment). @param
/// command  e.g. "rematch rollout"
void require_alone(const std::string& command);

}  // namespace rematch
