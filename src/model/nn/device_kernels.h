#pragma once
#include <c10/core/Device.h>

namespace rematch {

/// True if tensors of this device are computed by a device's fused operators; false on the CPU,
/// whose operators and bits stay as they are. Meta tensors take the CPU's path, except inside
/// MetaStandsForDevice.
bool uses_device_kernels(const at::Device& device);

/// While it exists, meta tensors of this thread stand for a device's, for plans of GPU runs.
class MetaStandsForDevice {
 public:
  explicit MetaStandsForDevice(bool on);
  ~MetaStandsForDevice();
  MetaStandsForDevice(const MetaStandsForDevice&) = delete;
  MetaStandsForDevice& operator=(const MetaStandsForDevice&) = delete;

 private:
  bool before_;
};

}  // namespace rematch
