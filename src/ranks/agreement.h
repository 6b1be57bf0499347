#pragma once
#include "ranks/phase.h"

namespace rematch {

/// Goes with the last user in mstep/.
class Agreement {
 public:
  explicit Agreement(Group& group) : group_(group) {}
  void attempt(const std::function<void()>& part) {
    if (failure_) return;
    if (group_.is_alone()) return part();
    try {
      part();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void conclude() {
    together(group_, [&] {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    });
  }

 private:
  Group& group_;
  std::exception_ptr failure_;
};

}  // namespace rematch
