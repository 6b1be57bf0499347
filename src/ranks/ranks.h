#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ranks/group.h"
#include "ranks/world.h"
#include "settings/ranks.h"

namespace rematch {

/// Membership of this process in its world: connected to the other ranks and watched, from
/// construction to destruction. The group of a process that is alone when the world has one rank.
class Ranks {
 public:
  /// What the watchdog tells; called on its thread.
  struct Listener {
    std::function<void(const std::string&)> warn;  ///< a rank is silent
    /// A rank is lost: ends the process, without destructors, because threads wait in calls that
    /// never return.
    std::function<void(const std::string& problem)> lost;
  };
  struct Options {
    /// how long the ranks wait for one that lives but does not go on (`training.ddp_timeout`)
    std::chrono::seconds patience{1800};
    DdpBackend backend = DdpBackend::kGloo;
    std::string device;  ///< of this rank; kNccl needs a GPU
  };
  /// @throws UserError (environment) when the ranks do not meet, or are programs of different
  /// builds; (config) for a backend that this build or device does not have
  Ranks(const World& world, Listener listener, Options options);
  /// Rank 0 leaves last when it hosts the store.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  Group& group();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Refuses several ranks where a command is one process. @throws UserError (environment). @param
/// command  e.g. "rematch rollout"
void require_alone(const std::string& command);

}  // namespace rematch
