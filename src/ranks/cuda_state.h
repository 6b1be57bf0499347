#pragma once
#include <optional>
#include <string>

#include "base/error.h"

namespace rematch {

/// What decides whether this process has CUDA devices.
struct CudaState {
  int built_for = 0;    ///< CUDA of this torch build: 13000 is 13.0; 0 = it has none
  int num_devices = 0;  ///< that the process sees
  /// version of the loaded driver, "535.104.05"; empty = none is known
  std::string driver;
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES
};

CudaState cuda_state();

/// Why a device does not exist: a torch without CUDA, no driver or one that is too old,
/// CUDA_VISIBLE_DEVICES, a number that is too large.
/// @param wish  as --device names it
Problem missing_device(const std::string& wish, const CudaState& state);

}  // namespace rematch
