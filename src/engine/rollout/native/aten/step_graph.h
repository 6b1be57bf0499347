#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace rematch {

/// Device work that is recorded once and launched as a whole, instead of launching the hundreds of
/// kernels of a small step one by one.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Records `work`. It must use the same tensors at every replay, and neither wait nor copy from
  /// the host.
  /// @throws c10::Error if the device cannot record it
  virtual void capture(const std::function<void()>& work) = 0;
  /// Repeats the work on the device's current stream.
  virtual void replay() = 0;
};

using StepGraphMaker = std::function<std::unique_ptr<StepGraph>()>;

/// Creates graphs through torch's registry (CUDA graphs on CUDA); empty if the device has none, as
/// on the CPU. In a release of torch without the registry the maker throws; then steps run without
/// graphs, and a line on stderr says so.
StepGraphMaker device_graphs(const c10::Device& device);

}  // namespace rematch
