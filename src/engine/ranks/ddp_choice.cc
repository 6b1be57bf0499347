#include "engine/ranks/ddp_choice.h"

#include <fmt/core.h>

#include <set>

namespace rematch {

std::string gpu_place(const at::Device& device, const std::string& host,
                      const std::string& visible) {
  if (!device.is_cuda()) return {};
  return fmt::format("{} {} {}", host, visible, device.has_index() ? device.index() : 0);
}

DdpBackend choose_ddp_backend(DdpBackend wish, const Strings& gpus) {
  if (wish != DdpBackend::kAuto) return wish;
  const std::set<std::string> different(gpus.begin(), gpus.end());
  const bool own_gpus = different.size() == gpus.size() && different.count("") == 0;
  return own_gpus ? DdpBackend::kNccl : DdpBackend::kGloo;
}

}  // namespace rematch
