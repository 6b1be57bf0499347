#pragma once
#include "base/keeps_state.h"

namespace rematch {

/// An engine with its own weights failed or returned an invalid answer. The run stops and saves its
/// state at the start of the window.
struct EngineFailure : KeepingError {
  using KeepingError::KeepingError;
};

}  // namespace rematch
