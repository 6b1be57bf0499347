#pragma once
#include <exception>
#include <functional>

#include "base/error.h"
#include "base/keeps_state.h"
#include "engine/ranks/group.h"

namespace rematch {

/// The problems of another rank that failed, prefixed with its number. A rank's own failure takes
/// precedence in reports.
class PeerFailure : public UserError {
 public:
  using UserError::UserError;
};

/// A PeerFailure that keeps the state.
class KeepingPeerFailure : public PeerFailure, public KeepsState {
 public:
  using PeerFailure::PeerFailure;
};

/// Thrown by a synchronous call if another rank has failed in the phase; caught at the phase's end.
struct PeerStopped {};

/// Runs `body` on every rank: succeeds or fails on all ranks at once, so no rank blocks in a call
/// that the others never enter. The body may use synchronous calls of the group; the first one
/// after a failure on another rank ends the body. The body must complete the asynchronous calls
/// that it has started, whatever happens. A phase inside a phase belongs to the outer one.
/// Cost: one all_reduce of an integer; nothing when alone.
/// @param name  static name of the phase, for the watchdog
/// @throws on all ranks if the body failed on any. All ranks agree on one failure: that of the
/// lowest rank, but a failure that does not keep the state takes precedence over those that do (all
/// ranks save, or none), and a PeerFailure comes last. The rank that caused it throws its own
/// exception; the others throw Interrupted after an interrupt, else PeerFailure.
void run_phase(Group& group, const char* name, const std::function<void()>& body);

/// run_phase() under the name of the current phase.
void together(Group& group, const std::function<void()>& body);

/// True on every rank if `here` is true on any. Cost: one all_reduce of an integer.
bool on_any_rank(Group& group, bool here);

}  // namespace rematch
