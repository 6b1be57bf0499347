#pragma once
#include <span>

#include "base/enum_names.h"

namespace rematch {

/// Transport of tensors between ranks (`training.ddp_backend`).
enum class DdpBackend {
  kAuto,  ///< NCCL if this build has it and every rank has a different GPU, else Gloo
  kGloo,  ///< through host memory, over TCP
  kNccl,  ///< between GPUs
};
constexpr auto names_of(DdpBackend) {
  using enum DdpBackend;
  return std::to_array<EnumName<DdpBackend>>({{kAuto, "auto"}, {kGloo, "gloo"}, {kNccl, "nccl"}});
}

}  // namespace rematch
