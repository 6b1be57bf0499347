#pragma once
#include "base/error.h"

namespace rematch {

/// Base of errors that leave the state after the last finished step intact: the run saves it before
/// it ends.
class KeepsState {
 public:
  virtual ~KeepsState() = default;
};

/// Such an error that a user can cause and fix.
class KeepingError : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

}  // namespace rematch
