#pragma once
#include "base/error.h"
#include "base/keeps_state.h"

namespace rematch {

/// An engine with its own weights failed or returned something impossible; names the sample and the
/// place. The run stops, and the state at the window's start is saved.
class EngineFailure : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

}  // namespace rematch
