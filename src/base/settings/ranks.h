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
inline constexpr EnumName<DdpBackend> kDdpBackends[] = {
    {DdpBackend::kAuto, "auto"}, {DdpBackend::kGloo, "gloo"}, {DdpBackend::kNccl, "nccl"}};
constexpr std::span<const EnumName<DdpBackend>> names_of(DdpBackend) { return kDdpBackends; }

}  // namespace rematch
