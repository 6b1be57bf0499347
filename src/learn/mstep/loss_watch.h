#pragma once
#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>

namespace c10 {
struct Event;
}

namespace rematch {

/// Sees that a loss is not finite while a device still computes later rows. The host never waits: a
/// row's loss is copied when the device comes to it, and read once it has arrived.
class LossWatch {
 public:
  LossWatch();
  ~LossWatch();
  LossWatch(const LossWatch&) = delete;

  /// Queues the copy of a row's loss to the host; cost: 4 bytes. Does nothing if page-locked memory
  /// is unavailable.
  /// @param total  scalar float32
  void add(const at::Tensor& total);
  /// True if a loss that has arrived is not finite.
  bool sees_non_finite();

 private:
  struct Arriving {
    at::Tensor total;                     ///< on the host
    std::unique_ptr<c10::Event> arrival;  ///< null: it is there
  };
  std::deque<Arriving> arriving_;  ///< in the order of the rows
};

}  // namespace rematch
