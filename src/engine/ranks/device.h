#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "base/settings/model.h"
#include "engine/ranks/world.h"

namespace rematch {

/// The device to compute on.
/// @param requested_device  "auto" or "" (CUDA if this torch build and machine have it, else CPU),
/// "cpu", "cuda", "cuda:N"
/// @throws UserError (config) for any other value; (environment) when CUDA is requested but
/// unavailable, saying what is missing
at::Device choose_device(const std::string& requested_device);

/// The device of a rank: if `requested_device` leaves it open, each rank of a host gets a different
/// GPU.
/// @param num_gpus  visible to this process
/// @throws UserError (environment) naming both numbers when the host has fewer GPUs than ranks
std::string rank_device(const std::string& requested_device, const World& world, int num_gpus);
/// Number of CUDA devices that this process sees; 0 without a CUDA build of torch.
int num_gpus();

/// Prepares this process for its device: makes it torch's current one, so that nothing opens a
/// context on another GPU, and turns off cuDNN's attention, which builds a plan for every shape.
/// Segments of torch's allocator then grow, so that rows of different lengths leave few gaps,
/// unless the environment has settings or the process holds vLLM, whose pools exclude that. Call it
/// at start-up, before anything is on the device; the last call counts.
void use_device(const at::Device& device, bool with_vllm = false);

/// Returns to the device the memory that torch keeps of freed tensors, so that an engine that
/// allocates without torch can take it. No effect on a CPU.
void release_cached_memory(const at::Device& device);

/// One line for the log: "cpu, 2 threads" or "cuda:0 of 4".
std::string describe_device(const at::Device& device);

/// False for GPUs below compute capability 8.0, which would emulate it.
bool computes_bfloat16(const at::Device& device);

/// The dtype that a model computes in: `auto` is bfloat16 on a GPU and float32 on a CPU.
/// @throws UserError (environment) for bfloat16 on a device that does not compute in it
at::ScalarType dtype_on(const at::Device& device, ModelDtype requested_dtype,
                        const std::function<bool(const at::Device&)>& computes = computes_bfloat16);

}  // namespace rematch
