#pragma once
#include "base/error.h"
#include "base/keeps_state.h"

namespace rematch {

/// Images that were good when the data were checked cannot be used any more: names a file and its
/// record, or the data when all of a window are concerned. The run stops with its state saved.
class BadSample : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

}  // namespace rematch
