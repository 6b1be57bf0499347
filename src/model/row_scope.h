#pragma once
#include <memory>
#include <utility>

namespace rematch {

/// The training of one row: dropout is active until it is destroyed.
class RowScope {
 public:
  /// Without dropout.
  RowScope() = default;
  explicit RowScope(std::shared_ptr<bool> active) : active_(std::move(active)) { *active_ = true; }
  ~RowScope() {
    if (active_) *active_ = false;
  }
  RowScope(RowScope&&) = default;
  RowScope& operator=(RowScope&&) = delete;

 private:
  std::shared_ptr<bool> active_;
};

}  // namespace rematch
