#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "ranks/world.h"
#include "settings/model.h"

namespace rematch {

/// The device to compute on. @param wish  "auto" or "" (CUDA if this torch build and machine have
/// it, else CPU), "cpu", "cuda", "cuda:N"
/// @throws UserError (config) for any other value; (environment) when CUDA is requested but
/// unavailable, saying what is missing
at::Device choose_device(const std::string& wish);

/// The device of a rank: if `wish` leaves it open, each rank of a host gets a different GPU.
/// @param num_gpus  visible to this process
/// @throws UserError (environment) naming both numbers when the host has fewer GPUs than ranks
std::string rank_device(const std::string& wish, const World& world, int num_gpus);
/// Number of CUDA devices that this process sees; 0 without a CUDA build of torch.
int num_gpus();

/// One line for the log: "cpu, 2 threads" or "cuda:0 of 4".
std::string describe_device(const at::Device& device);

/// False for GPUs below compute capability 8.0, which would emulate it.
bool computes_bfloat16(const at::Device& device);

/// The dtype that a model computes in: `auto` is bfloat16 on a GPU and float32 on a CPU.
/// @throws UserError (environment) for bfloat16 on a device that does not compute in it
at::ScalarType dtype_on(const at::Device& device, ModelDtype wish,
                        const std::function<bool(const at::Device&)>& computes = computes_bfloat16);

}  // namespace rematch
