#pragma once
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/settings/ranks.h"
#include "engine/ranks/group.h"
#include "engine/ranks/watchdog.h"
#include "engine/ranks/world.h"

namespace rematch {

/// Membership of this process in its world: connects to the other ranks and runs a watchdog, from
/// construction to destruction. With one rank it is just alone().
class Ranks {
 public:
  struct Options {
    /// time that ranks wait for one that does not start or makes no progress
    /// (`training.ddp_timeout`)
    std::chrono::seconds patience{1800};
    DdpBackend backend = DdpBackend::kGloo;
    std::string device;  ///< of this rank; kNccl needs a GPU, kAuto chooses by it
    /// called with a warning about another rank, on the watchdog's thread
    std::function<void(const std::string&)> warn;
    /// Called when another rank is lost. Ends the process on the watchdog's thread, without
    /// destructors, because other threads wait in calls that never return.
    std::function<void(const std::string& problem)> lost;
  };
  /// @throws UserError (environment) if the ranks do not connect, or run different builds; (config)
  /// for a backend that this build or device does not support
  Ranks(const World& world, const Options& options);
  /// Rank 0 leaves last when it hosts the store.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  Group& group() { return group_ ? *group_ : alone(); }
  /// The backend that kAuto became.
  DdpBackend backend() const { return backend_; }

 private:
  Watchdog::Progress progress() const;
  void connect(const Options& options);

  World world_;
  int num_exceptions_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<StoreGuard> guard_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Group> group_;
  DdpBackend backend_ = DdpBackend::kGloo;
  std::atomic<bool> is_connected_ = false;  // the watchdog's thread may use `group_`
};

/// @throws UserError (environment) if this process is one of several ranks.
/// @param command  e.g. "rematch rollout"
void require_alone(const std::string& command);

}  // namespace rematch
