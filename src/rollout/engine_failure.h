#pragma once
#include "base/error.h"

namespace rematch {

/// An engine with weights of its own broke, or said something that cannot be: which sample, and where. The run stops with the state of the
/// window's start saved.
class EngineFailure : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace rematch
