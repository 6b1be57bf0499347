#pragma once
#include "base/error.h"

namespace rematch {

/// Base of errors that leave the state after the last finished step intact: the run saves it before
/// it ends.
class KeepsState {
 public:
  virtual ~KeepsState() = default;
};

/// A UserError that leaves the state intact.
class KeepingError : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

}  // namespace rematch
