#pragma once
#include "base/error.h"

namespace rematch {

/// The machine lacks memory or file descriptors at the moment (environment). The file is not at
/// fault: code that skips unreadable files must rethrow this.
class OutOfResources : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace rematch
