#include "model/nn/device_kernels.h"

#include <utility>

namespace rematch {
namespace {

thread_local bool meta_stands_for_device = false;

}  // namespace

bool uses_device_kernels(const at::Device& device) {
  return !device.is_cpu() && (!device.is_meta() || meta_stands_for_device);
}

MetaStandsForDevice::MetaStandsForDevice(bool on)
    : before_(std::exchange(meta_stands_for_device, on)) {}
MetaStandsForDevice::~MetaStandsForDevice() { meta_stands_for_device = before_; }

}  // namespace rematch
