#pragma once
#include <exception>
#include <functional>

#include "base/error.h"
#include "base/keeps_state.h"
#include "ranks/group.h"

namespace rematch {

/// Another rank failed: its problems, with its number in front. Thrown within an Agreement it gives
/// way to that rank's own failure.
class PeerFailure : public UserError {
 public:
  using UserError::UserError;
};

/// The same, where the failure keeps the state.
class KeepingPeerFailure : public PeerFailure, public KeepsState {
 public:
  using PeerFailure::PeerFailure;
};

/// Work that all ranks do, or fail in, together: no rank goes on into a call of the group that
/// another one never reaches.
///
///   Agreement all(group);
///   all.attempt([&] { …may throw on one rank… });
///   all.conclude();
class Agreement {
 public:
  explicit Agreement(Group& group) : group_(group) {}

  /// Does this rank's part, unless an earlier one failed here; keeps what it throws.
  void attempt(const std::function<void()>& part);
  bool has_failed() const { return failure_ != nullptr; }
  /// Every rank calls it. @throws on all ranks when a part failed on any: the rank's own exception
  /// where it is the run's failure; elsewhere Interrupted after an interrupt, else PeerFailure. The
  /// run's failure is the one of the lowest rank, but one that does not keep the state goes before
  /// those that do (all ranks save, or none), and a PeerFailure comes last: the rank it names
  /// reports its cause. Cost: one all_reduce of an integer; nothing when alone.
  void conclude();

 private:
  Group& group_;
  std::exception_ptr failure_;
};

/// attempt() and conclude() of one part.
void together(Group& group, const std::function<void()>& part);

/// True on every rank when `here` is true on any. Cost: as conclude().
bool on_any_rank(Group& group, bool here);

}  // namespace rematch
