#include "engine/rollout/native/aten/step_graph.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>

namespace rematch {
namespace {

class DeviceGraph : public StepGraph {
 public:
  /// @param pool  of all graphs of a runner; {0, 0} until the first one is recorded
  DeviceGraph(const c10::Device& device, std::shared_ptr<c10::MempoolId_t> pool)
      : device_(device), pool_(std::move(pool)), graph_(at::create_graph_impl(device.type())) {}

  void capture(const std::function<void()>& work) override {
    // Devices cannot record the default stream. Waits for pending work before and after recording.
    const c10::DeviceGuard on_device(device_);
    const c10::impl::VirtualGuardImpl guard(device_.type());
    guard.synchronizeDevice(device_.index());
    {
      const c10::StreamGuard side(guard.getStreamFromGlobalPool(device_));
      work();  // warm-up: the set-up at the first call of a kernel must not be recorded
      guard.synchronizeDevice(device_.index());
      graph_->capture_begin(*pool_, at::GraphCaptureMode::ThreadLocal);
      try {
        work();
      } catch (...) {
        abandon();
        throw;
      }
      graph_->capture_end();
      *pool_ = graph_->pool();
    }
    guard.synchronizeDevice(device_.index());
  }

  void replay() override { graph_->replay(); }

 private:
  // Ends a failed recording; the device may report the error again.
  void abandon() {
    try {
      graph_->capture_end();
    } catch (const std::exception&) {
    }
  }

  c10::Device device_;
  std::shared_ptr<c10::MempoolId_t> pool_;
  std::unique_ptr<at::GraphImplInterface> graph_;
};

}  // namespace

StepGraphMaker device_graphs(const c10::Device& device) {
  if (!at::has_graph_impl(device.type())) return {};
  // Graphs are replayed one after another, so they can use the same memory.
  const auto pool = std::make_shared<c10::MempoolId_t>(0, 0);
  return [device, pool] { return std::make_unique<DeviceGraph>(device, pool); };
}

}  // namespace rematch

#else  // a release of torch without the registry, such as 2.11.0
#include <stdexcept>

namespace rematch {

StepGraphMaker device_graphs(const c10::Device& device) {
  if (device.is_cpu()) return {};
  return []() -> std::unique_ptr<StepGraph> {
    throw std::runtime_error("libtorch " REMATCH_TORCH_VERSION " has no graphs of devices");
  };
}

}  // namespace rematch
#endif
