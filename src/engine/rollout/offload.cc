#include "engine/rollout/offload.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/error.h"
#include "base/host_memory.h"
#include "base/text.h"
#include "engine/ranks/device.h"

namespace rematch {
namespace {

class DeviceMover : public TensorMover {
 public:
  bool is_on_device(const at::Tensor& tensor) const override { return !tensor.device().is_cpu(); }
  at::Tensor to_host(const at::Tensor& tensor) override {
    const at::Tensor host = host_like(tensor);
    host.copy_(tensor);
    return host;
  }
  at::Tensor to_device(const at::Tensor& tensor, const at::Device& device) override {
    return at::empty_like(tensor, tensor.options().device(device).pinned_memory(false))
        .copy_(tensor);
  }
  void release_cached(const at::Device& device) override { release_cached_memory(device); }

 private:
  // Page-locked memory copies several times faster but is limited; falls back to ordinary memory.
  static at::Tensor host_like(const at::Tensor& tensor) {
    const at::TensorOptions host = tensor.options().device(at::kCPU);
    if (tensor.is_cuda()) {
      try {
        return at::empty_like(tensor, host.pinned_memory(true));
      } catch (const c10::Error&) {
      }
    }
    return at::empty_like(tensor, host);
  }
};

double total_gib(const std::vector<at::Tensor>& tensors) {
  size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return static_cast<double>(bytes) / kBytesPerGib;
}

// A view would keep the device memory alive and miss updates of the parameter.
void check_movable(const at::Tensor& tensor) {
  const bool is_whole =
      tensor.storage_offset() == 0 && tensor.storage().nbytes() == tensor.nbytes();
  REMATCH_CHECK(is_whole,
                fmt::format("{} of {} bytes", tensor.nbytes(), tensor.storage().nbytes()));
  REMATCH_CHECK(
      tensor.storage().use_count() == 1,
      fmt::format("{} tensors share the storage of one to move", tensor.storage().use_count()));
  REMATCH_CHECK(tensor.is_leaf(), "a tensor to move was computed by autograd");
}

}  // namespace

std::unique_ptr<TensorMover> make_tensor_mover() { return std::make_unique<DeviceMover>(); }

Offload::Offload(Options options, Tensors parameters, std::unique_ptr<TensorMover> mover)
    : options_(std::move(options)), parameters_(std::move(parameters)), mover_(std::move(mover)) {}

// Each tensor once, without those that a failed restore left in host memory.
std::vector<at::Tensor> Offload::tensors_to_move() const {
  std::vector<at::Tensor> tensors;
  std::set<const at::TensorImpl*> seen;
  for (const Offloaded& offloaded : offloaded_) seen.insert(offloaded.tensor.unsafeGetTensorImpl());
  const auto take = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.numel() > 0 && mover_->is_on_device(tensor) &&
        seen.insert(tensor.unsafeGetTensorImpl()).second) {
      tensors.push_back(tensor);
    }
  };
  if (options_.settings.moves_model()) {
    for (const at::Tensor& parameter : parameters_()) {
      take(parameter);
      take(parameter.grad());
    }
  }
  if (options_.settings.moves_optimizer() && optimizer_) {
    for (const at::Tensor& tensor : optimizer_()) take(tensor);
  }
  return tensors;
}

void Offload::enter() {
  if (depth_ > 0) {
    ++depth_;
    return;
  }
  const std::vector<at::Tensor> tensors = tensors_to_move();
  for (const at::Tensor& tensor : tensors) check_movable(tensor);
  move_out(tensors);
  depth_ = 1;
}

void Offload::move_out(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  offloaded_.reserve(offloaded_.size() + tensors.size());
  try {
    std::set<at::DeviceIndex> emptied;
    for (const at::Tensor& tensor : tensors) {
      const at::Device home = tensor.device();
      tensor.set_data(mover_->to_host(tensor));
      offloaded_.push_back({tensor, home});
    }
    for (const Offloaded& offloaded : offloaded_) {
      if (emptied.insert(offloaded.home.index()).second) mover_->release_cached(offloaded.home);
    }
  } catch (const std::exception& error) {
    const std::string reason = first_line(error.what());
    const size_t num_moved = offloaded_.size();
    move_back();  // if this fails too, its error is more informative
    throw environment_error(
        {.error = "training state could not be moved to host memory for a rollout",
         .where = "custom.extra.rollout_matching.offload",
         .what = fmt::format("{} of {} tensors ({:.2f} GiB in total) were moved: {}", num_moved,
                             tensors.size(), total_gib(tensors), reason),
         .fix = "free host memory, or set offload.offload_optimizer or "
                "offload.offload_model to false"});
  }
}

void Offload::leave() {
  if (--depth_ == 0) move_back();
}

void Offload::move_back() {
  const at::NoGradGuard no_grad;
  const size_t num_all = offloaded_.size();
  try {
    // Removes each tensor once it is moved back: after a failure the list holds those still in host
    // memory.
    while (!offloaded_.empty()) {
      const Offloaded& last = offloaded_.back();
      last.tensor.set_data(mover_->to_device(last.tensor, last.home));
      offloaded_.pop_back();
    }
  } catch (const std::exception& error) {
    std::vector<at::Tensor> left;
    for (const Offloaded& offloaded : offloaded_) left.push_back(offloaded.tensor);
    throw environment_error(
        {.error = "training state could not return to the device after a rollout",
         .where = "custom.extra.rollout_matching.offload",
         .what = fmt::format("{} of {} tensors ({:.2f} GiB) are still in host memory: {}",
                             offloaded_.size(), num_all, total_gib(left), first_line(error.what())),
         .fix = "lower vllm.gpu_memory_utilization, set vllm.sleep_level: 1, or stop other "
                "programs on the device"});
  }
}

OffloadScope::OffloadScope(Offload* offload) : offload_(offload) {
  if (offload_ != nullptr) offload_->enter();
}

OffloadScope::~OffloadScope() {
  if (offload_ == nullptr) return;
  try {
    offload_->leave();
  } catch (const UserError& error) {
    // The pending exception takes precedence; this error must not end the program.
    const Problem& problem = error.problems().front();
    if (offload_->options_.warn)
      offload_->options_.warn(fmt::format("{}: {}; {}", problem.error, problem.what, problem.fix));
  }
}

void OffloadScope::restore() {
  if (Offload* offload = std::exchange(offload_, nullptr); offload != nullptr) offload->leave();
}

}  // namespace rematch
