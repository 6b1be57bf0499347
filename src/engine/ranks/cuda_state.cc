#include "engine/ranks/cuda_state.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace rematch {
namespace {

// Reads the version from a line such as "NVRM version: NVIDIA UNIX x86_64 Kernel Module 535.104.05
// Sat Aug 19 …".
std::string loaded_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos)
      return word;
  }
  return "";
}

int major_version(const std::string& version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

// The oldest driver that runs programs of a major release of CUDA; 0 = unknown.
int oldest_driver(int built_for) {
  switch (built_for / 1000) {
    case 11: return 450;
    case 12: return 525;
    case 13: return 580;
    default: return 0;
  }
}

}  // namespace

CudaState cuda_state() {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  CudaState state{.built_for = hooks.hasCUDART() ? static_cast<int>(hooks.versionCUDART()) : 0,
                  .driver = loaded_driver()};
  if (state.built_for > 0) state.num_devices = static_cast<int>(hooks.deviceCount());
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) state.visible = visible;
  return state;
}

Problem missing_device(const std::string& requested_device, const CudaState& state) {
  const std::string visible =
      state.visible ? fmt::format("; CUDA_VISIBLE_DEVICES=\"{}\"", *state.visible) : "";
  const std::string cuda =
      fmt::format("CUDA {}.{}", state.built_for / 1000, state.built_for % 1000 / 10);
  const int oldest = oldest_driver(state.built_for);
  const auto problem = [&](const std::string& what, const std::string& fix) {
    return Problem{.error = "the requested CUDA device does not exist",
                   .where = fmt::format("--device {}", requested_device),
                   .what = what,
                   .fix = fix + ", or use --device cpu or auto"};
  };
  if (state.built_for == 0)
    return problem("this torch build has no CUDA",
                   "install a CUDA build of the same release of torch");
  if (state.num_devices > 0) {
    return problem(
        fmt::format("CUDA devices found: {}, the last is cuda:{}{}", state.num_devices,
                    state.num_devices - 1, visible),
        state.visible ? "name one of them, correct CUDA_VISIBLE_DEVICES" : "name one of them");
  }
  if (state.driver.empty()) {
    return problem(
        fmt::format("torch is built for {}, but no NVIDIA driver is loaded here{}", cuda, visible),
        "use a machine or a container with a GPU");
  }
  if (major_version(state.driver) < oldest) {
    return problem(
        fmt::format(
            "the NVIDIA driver {} is too old: torch is built for {}, which needs {} or later",
            state.driver, cuda, oldest),
        "update the driver, install a torch built for an older CUDA");
  }
  return problem(fmt::format("torch is built for {}, the driver is {}, and no device is found{}",
                             cuda, state.driver, visible),
                 state.visible ? "unset CUDA_VISIBLE_DEVICES or name devices that exist"
                               : "check that nvidia-smi finds one");
}

}  // namespace rematch
