#include "engine/ranks/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/terminal_text.h"
#include "engine/ranks/cuda_state.h"

namespace rematch {

namespace {

/// Translates "gpu" and "2", which other programs accept, into PyTorch's names.
std::string torch_name(const std::string& requested_device) {
  if (requested_device == "gpu") return "cuda";
  const bool is_number = !requested_device.empty() && requested_device.size() < 4 &&
                         requested_device.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? "cuda:" + requested_device : requested_device;
}

}  // namespace

int num_gpus() {
  // The hooks need no link to the CUDA runtime; in a CPU build of torch they report no device.
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

std::string rank_device(const std::string& requested_device, const World& world, int num_gpus) {
  const bool is_open = requested_device.empty() || requested_device == "auto" ||
                       torch_name(requested_device) == "cuda";
  if (world.is_alone() || !is_open || num_gpus == 0) return requested_device;
  if (world.sees_own_gpu && num_gpus == 1) return "cuda:0";
  if (world.local_rank < num_gpus) return fmt::format("cuda:{}", world.local_rank);
  const std::string visible = cuda_state().visible.value_or("");
  throw environment_error(
      {.error = "this host has fewer GPUs than ranks",
       .where =
           fmt::format("rank {} of {}, LOCAL_RANK={}", world.rank, world.size, world.local_rank),
       .what = fmt::format("{} GPU{} found{}, {} ranks on this host", num_gpus,
                           num_gpus == 1 ? "" : "s",
                           visible.empty() ? "" : ", CUDA_VISIBLE_DEVICES=" + visible,
                           std::max(world.local_size, world.local_rank + 1)),
       .fix = "start as many ranks as there are GPUs, correct CUDA_VISIBLE_DEVICES, "
              "use --device cuda:0 where each rank sees only its own "
              "GPU, or use --device cpu"});
}

at::Device choose_device(const std::string& requested_device) {
  if (const std::string name = torch_name(requested_device); name != requested_device)
    return choose_device(name);
  if (requested_device.empty() || requested_device == "auto")
    return num_gpus() > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  if (requested_device == "cpu") return at::Device(at::kCPU);
  // Only tests register a backend with torch.
  if (c10::is_privateuse1_backend_registered() &&
      requested_device == c10::get_privateuse1_backend())
    return at::Device(at::kPrivateUse1, 0);
  int index = -1;
  if (requested_device == "cuda") {
    index = 0;
  } else if (requested_device.rfind("cuda:", 0) == 0 && requested_device.size() > 5 &&
             requested_device.size() < 9 &&
             requested_device.find_first_not_of("0123456789", 5) == std::string::npos) {
    index = std::stoi(requested_device.substr(5));
  } else {
    throw config_error({.error = "unknown device",
                        .where = "--device",
                        .what = fmt::format("\"{}\"", requested_device),
                        .fix = "use auto, cpu, cuda (or gpu), cuda:N (or N)"});
  }
  if (index >= num_gpus())
    throw UserError(ErrorKind::kEnvironment, missing_device(requested_device, cuda_state()));
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

void use_device(const at::Device& device, bool with_vllm) {
  at::globalContext().setSDPUseCuDNN(false);
  if (device.is_cpu() || device.is_meta()) return;
  const bool is_set = std::getenv("PYTORCH_ALLOC_CONF") != nullptr ||
                      std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr;
  if (!is_set)
    c10::CachingAllocator::setAllocatorSettings(
        fmt::format("expandable_segments:{}", with_vllm ? "False" : "True"));
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

void release_cached_memory(const at::Device& device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

bool computes_bfloat16(const at::Device& device) {
  if (!device.is_cuda()) return true;
  // The only check of the compute capability that torch offers without the CUDA runtime: true from
  // 8.0 on.
  const c10::DeviceGuard on_device(device);
  return at::detail::getCUDAHooks().supportsBFloat16ConvolutionWithCuDNNv8();
}

at::ScalarType dtype_on(const at::Device& device, ModelDtype requested_dtype,
                        const std::function<bool(const at::Device&)>& computes) {
  if (requested_dtype == ModelDtype::kFloat32 ||
      (requested_dtype == ModelDtype::kAuto && !device.is_cuda()))
    return at::kFloat;
  if (computes(device)) return at::kBFloat16;
  throw environment_error(
      {.error = "this GPU does not compute in bfloat16",
       .where = fmt::format("{}, model.torch_dtype: {}", describe_device(device),
                            requested_dtype == ModelDtype::kAuto ? "auto" : "bfloat16"),
       .what = "its compute capability is below 8.0; auto means bfloat16 on a GPU",
       .fix = "set model.torch_dtype: float32, which takes twice the memory, or use a "
              "GPU from the Ampere generation on"});
}

std::string describe_device(const at::Device& device) {
  if (device.is_cpu()) return "cpu, " + counted(at::get_num_threads(), "thread");
  if (!device.is_cuda()) return device.str();
  return fmt::format("cuda:{} of {}", static_cast<int>(device.index()), num_gpus());
}

}  // namespace rematch
