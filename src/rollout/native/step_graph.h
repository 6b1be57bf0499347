#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace rematch {

/// Work of a device that is recorded once and launched as a whole, which saves launching the
/// hundreds of kernels of a small step one by one.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Records `work`, which reads and writes the same tensors at every replay, waits for nothing and
  /// copies nothing from the host.
  /// @throws c10::Error when the device cannot record it
  virtual void capture(const std::function<void()>& work) = 0;
  /// Repeats the work; results are available in the order of the device's current stream.
  virtual void replay() = 0;
};

using StepGraphMaker = std::function<std::unique_ptr<StepGraph>()>;

/// Graphs of a device by torch's own registry (CUDA graphs on CUDA); empty where there are none, as
/// on the CPU. In a release of torch without that registry the maker throws, which ends the
/// recording of steps with a line that says so.
StepGraphMaker device_graphs(const c10::Device& device);

}  // namespace rematch
