#pragma once
#include "base/error.h"
#include "base/keeps_state.h"

namespace rematch {

/// An image that was good when the data were checked cannot be used any more: names its file and its record. The run stops with its state
/// saved.
class BadSample : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

}  // namespace rematch
