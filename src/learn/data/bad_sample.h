#pragma once
#include "base/error.h"
#include "base/keeps_state.h"

namespace rematch {

/// An image became unusable after the initial check. Names the file and its record, or the data set
/// if all images of a window are unusable. The run saves its state and stops.
class BadSample : public UserError, public KeepsState {
 public:
  using UserError::UserError;
};

}  // namespace rematch
