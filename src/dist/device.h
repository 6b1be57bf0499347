#pragma once
#include <ATen/ATen.h>

#include <string>

#include "settings/model.h"

namespace rematch {

/// Where to compute. @param wish  "auto" or "" (CUDA when this torch build and machine have it, else CPU), "cpu", "cuda", "cuda:N"
/// @throws UserError (config) for any other value; (environment) when CUDA is requested but unavailable, saying what is missing
at::Device choose_device(const std::string& wish);

/// One line for the log: "cpu, 2 threads" or "cuda:0 of 4".
std::string describe_device(const at::Device& device);

/// What a model computes in: `auto` is bfloat16 on a GPU and float32 on a CPU.
at::ScalarType dtype_on(const at::Device& device, ModelDtype wish);

/// True when this libtorch has a CUDA backend and a device is available.
bool cuda_is_available();

}  // namespace rematch
