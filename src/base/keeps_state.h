#pragma once

namespace rematch {

/// Base of errors that leave the state after the last finished step intact: the run saves it before
/// it ends.
class KeepsState {
 public:
  virtual ~KeepsState() = default;
};

}  // namespace rematch
