#include "ranks/device.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/terminal_text.h"
#include "ranks/cuda_state.h"

namespace rematch {

namespace {

/// Translates "gpu" and "2", which other programs accept, into PyTorch's names.
std::string torch_name(const std::string& wish) {
  if (wish == "gpu") return "cuda";
  const bool is_number =
      !wish.empty() && wish.size() < 4 && wish.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? "cuda:" + wish : wish;
}

}  // namespace

int num_gpus() {
  // The hooks need no link to the CUDA runtime; in a CPU build of torch they report no device.
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

std::string rank_device(const std::string& wish, const World& world, int num_gpus) {
  const bool is_open = wish.empty() || wish == "auto" || torch_name(wish) == "cuda";
  if (world.is_alone() || !is_open || num_gpus == 0) return wish;
  if (world.local_rank < num_gpus) return fmt::format("cuda:{}", world.local_rank);
  const std::string visible = cuda_state().visible.value_or("");
  throw UserError(ErrorKind::kEnvironment,
                  {.error = "this host has fewer GPUs than ranks",
                   .where = fmt::format("rank {} of {}, LOCAL_RANK={}", world.rank, world.size,
                                        world.local_rank),
                   .what = fmt::format("{} GPU{} found{}, {} ranks on this host", num_gpus,
                                       num_gpus == 1 ? "" : "s",
                                       visible.empty() ? "" : ", CUDA_VISIBLE_DEVICES=" + visible,
                                       std::max(world.local_size, world.local_rank + 1)),
                   .fix = "start as many ranks as there are GPUs, correct CUDA_VISIBLE_DEVICES, "
                          "use --device cuda:0 where each rank sees only its own "
                          "GPU, or use --device cpu"});
}

at::Device choose_device(const std::string& wish) {
  if (const std::string name = torch_name(wish); name != wish) return choose_device(name);
  if (wish.empty() || wish == "auto")
    return num_gpus() > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  if (wish == "cpu") return at::Device(at::kCPU);
  // Only tests register a backend with torch.
  if (c10::is_privateuse1_backend_registered() && wish == c10::get_privateuse1_backend())
    return at::Device(at::kPrivateUse1, 0);
  int index = -1;
  if (wish == "cuda") {
    index = 0;
  } else if (wish.rfind("cuda:", 0) == 0 && wish.size() > 5 && wish.size() < 9 &&
             wish.find_first_not_of("0123456789", 5) == std::string::npos) {
    index = std::stoi(wish.substr(5));
  } else {
    throw UserError(ErrorKind::kConfig, {.error = "unknown device",
                                         .where = "--device",
                                         .what = fmt::format("\"{}\"", wish),
                                         .fix = "use auto, cpu, cuda (or gpu), cuda:N (or N)"});
  }
  if (index >= num_gpus())
    throw UserError(ErrorKind::kEnvironment, missing_device(wish, cuda_state()));
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

bool computes_bfloat16(const at::Device& device) {
  if (!device.is_cuda()) return true;
  // The only check of the compute capability that torch offers without the CUDA runtime: true from
  // 8.0 on.
  const c10::DeviceGuard on_device(device);
  return at::detail::getCUDAHooks().supportsBFloat16ConvolutionWithCuDNNv8();
}

at::ScalarType dtype_on(const at::Device& device, ModelDtype wish,
                        const std::function<bool(const at::Device&)>& computes) {
  if (wish == ModelDtype::kFloat32 || (wish == ModelDtype::kAuto && !device.is_cuda()))
    return at::kFloat;
  if (computes(device)) return at::kBFloat16;
  throw UserError(ErrorKind::kEnvironment,
                  {.error = "this GPU does not compute in bfloat16",
                   .where = fmt::format("{}, model.torch_dtype: {}", describe_device(device),
                                        wish == ModelDtype::kAuto ? "auto" : "bfloat16"),
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
