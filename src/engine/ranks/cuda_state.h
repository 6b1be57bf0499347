#pragma once
#include <optional>
#include <string>

#include "base/error.h"

namespace rematch {

/// Everything that decides whether this process has CUDA devices.
struct CudaState {
  int built_for = 0;    ///< CUDA version of this torch build: 13000 is 13.0; 0 = no CUDA
  int num_devices = 0;  ///< visible to this process
  /// version of the loaded driver, "535.104.05"; empty = unknown
  std::string driver;
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES
};

CudaState cuda_state();

/// Explains why a device does not exist: a torch without CUDA, no driver or an old one,
/// CUDA_VISIBLE_DEVICES, or a number that is too large.
/// @param requested_device  the value of --device
Problem missing_device(const std::string& requested_device, const CudaState& state);

}  // namespace rematch
