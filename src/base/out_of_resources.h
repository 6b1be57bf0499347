#pragma once
#include "base/error.h"

namespace rematch {

/// The machine lacks memory or file descriptors at the moment (environment). Says nothing about the
/// file that was to be read: whoever takes errors of a file as a fault of that file lets this one
/// pass.
class OutOfResources : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace rematch
