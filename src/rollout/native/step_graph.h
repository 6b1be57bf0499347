#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace rematch {

/// Work of a device that was recorded once and is launched as a whole: what a small step spends on launching its hundreds of kernels one by
/// one is saved.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Records `work`, which reads and writes the same tensors at every replay, waits for nothing and copies nothing from the host.
  /// @throws c10::Error when the device refuses something in it
  virtual void capture(const std::function<void()>& work) = 0;
  /// Does the work again; its results are there when the device's current stream has come to them.
  virtual void replay() = 0;
};

using StepGraphMaker = std::function<std::unique_ptr<StepGraph>()>;

/// Graphs of a device by torch's own registry (CUDA graphs on CUDA); empty where it knows none, as on the CPU.
StepGraphMaker device_graphs(const c10::Device& device);

}  // namespace rematch
