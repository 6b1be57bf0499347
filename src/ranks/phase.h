#pragma once
#include <exception>
#include <functional>

#include "base/error.h"
#include "base/keeps_state.h"
#include "ranks/group.h"

namespace rematch {

/// Another rank failed: its problems, with its number in front. Where both meet, that rank's own
/// failure is the one that is reported.
class PeerFailure : public UserError {
 public:
  using UserError::UserError;
};

/// The same, where the failure keeps the state.
class KeepingPeerFailure : public PeerFailure, public KeepsState {
 public:
  using PeerFailure::PeerFailure;
};

/// Ends a synchronous call of the group when another rank has failed in the phase; never leaves it.
struct PeerStopped {};

/// Runs `body` on every rank: succeeds or fails on all ranks at once, so no rank blocks in a call
/// that the others never enter. The body may use synchronous calls of the group; the first one
/// after a failure on another rank ends the body. Asynchronous calls that it has begun it completes
/// itself, whatever happens. A phase inside a phase belongs to the outer one.
/// @param name  of the phase, for the watchdog: a word that lives as long as the program
/// @throws on all ranks when the body failed on any: on a rank that failed by itself its own
/// exception, if that is the run's failure; elsewhere Interrupted after an interrupt, else
/// PeerFailure. The run's failure is the one of the lowest rank, but one that does not keep the
/// state goes before those that do (all ranks save, or none), and a PeerFailure comes last: the
/// rank it names reports its cause. Cost: one all_reduce of an integer; nothing when alone.
void run_phase(Group& group, const char* name, const std::function<void()>& body);

/// run_phase() under the name of the present phase.
void together(Group& group, const std::function<void()>& body);

/// True on every rank when `here` is true on any. Cost: one all_reduce of an integer.
bool on_any_rank(Group& group, bool here);

}  // namespace rematch
