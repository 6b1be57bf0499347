#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "base/settings/ranks.h"

namespace rematch {

/// A text that differs between ranks with different GPUs; empty for a rank without one.
/// @param host     name of the rank's host.
/// @param visible  its CUDA_VISIBLE_DEVICES
std::string gpu_place(const at::Device& device, const std::string& host,
                      const std::string& visible);

/// The backend of a run: `wish`, or for kAuto NCCL if every rank has a different GPU, else Gloo.
/// require_nccl() then refuses a build that lacks it: over host memory, a step of a large model
/// would take minutes.
/// @param gpus  gpu_place() of every rank
DdpBackend choose_ddp_backend(DdpBackend wish, const Strings& gpus);

}  // namespace rematch
