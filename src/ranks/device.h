#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "ranks/world.h"
#include "settings/model.h"

namespace rematch {

/// Where to compute. @param wish  "auto" or "" (CUDA when this torch build and machine have it,
/// else CPU), "cpu", "cuda", "cuda:N"
/// @throws UserError (config) for any other value; (environment) when CUDA is requested but
/// unavailable, saying what is missing
at::Device choose_device(const std::string& wish);

/// The device of a rank: where the wish leaves it open, every rank of a host has a GPU of its own.
/// @param num_gpus  that this process sees
/// @throws UserError (environment) naming both numbers when the host has fewer GPUs than ranks
std::string device_of_rank(const std::string& wish, const World& world, int num_gpus);
/// How many CUDA devices this process sees; 0 without a CUDA build of torch.
int num_gpus();

/// One line for the log: "cpu, 2 threads" or "cuda:0 of 4".
std::string describe_device(const at::Device& device);

/// False for GPUs before compute capability 8.0, which would emulate it.
bool computes_bfloat16(const at::Device& device);

/// What a model computes in: `auto` is bfloat16 on a GPU and float32 on a CPU.
/// @throws UserError (environment) when that is bfloat16 and the device does not compute in it
at::ScalarType dtype_on(const at::Device& device, ModelDtype wish,
                        const std::function<bool(const at::Device&)>& computes = computes_bfloat16);

/// True when this libtorch has a CUDA backend and a device is available.
bool cuda_is_available();

}  // namespace rematch
