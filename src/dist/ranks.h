#pragma once
#include <functional>
#include <memory>
#include <string>

#include "dist/group.h"
#include "dist/world.h"

namespace rematch {

/// Membership of this process in its world: connected to the other ranks and watched, from construction to destruction. The group of a
/// process that is alone when the world has one rank.
class Ranks {
 public:
  /// What the watchdog tells; called on its thread.
  struct Listener {
    std::function<void(const std::string&)> warn;  ///< a rank is silent
    /// A rank is lost: ends the process, without destructors, because threads wait in calls that never return.
    std::function<void(const std::string& problem)> lost;
  };
  /// @throws UserError (environment) when the ranks do not meet, or are programs of different builds
  Ranks(const World& world, Listener listener);
  /// Rank 0 leaves last when it hosts the store.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  Group& group();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Refuses several ranks where a command is one process. @throws UserError (environment). @param command  e.g. "rematch eval"
void require_alone(const std::string& command);

}  // namespace rematch
