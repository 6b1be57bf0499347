#pragma once

namespace rematch {

/// Base of errors that leave a run as it was after its last finished step: it saves its state
/// before it ends.
class KeepsState {
 public:
  virtual ~KeepsState() = default;
};

}  // namespace rematch
