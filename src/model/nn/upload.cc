#include "model/nn/upload.h"

namespace rematch {
namespace {

at::Tensor to_page_locked(const at::Tensor& host) {
  if (host.is_pinned()) return host;
  try {
    return at::empty(host.sizes(), host.options().pinned_memory(true)).copy_(host);
  } catch (const c10::Error&) {  // systems limit such memory
    return host;
  }
}

}  // namespace

at::Tensor upload(const at::Tensor& host, const at::Device& device) {
  if (device.is_cpu() || device.is_meta() || !host.device().is_cpu() || host.numel() == 0)
    return host.to(device);
  return to_page_locked(host).to(device, host.scalar_type(), /*non_blocking=*/true);
}

at::Tensor upload_index(const std::vector<int64_t>& values, const at::Device& device) {
  return upload(at::tensor(values, at::TensorOptions().dtype(at::kLong)), device);
}

}  // namespace rematch
