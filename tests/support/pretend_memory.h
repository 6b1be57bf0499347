#pragma once
#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <string>
#include <vector>

namespace rematch::test {

// The device's memory is host memory whose addresses are moved to where no program has any.

inline constexpr c10::DeviceType kPretend = c10::DeviceType::PrivateUse1;

/// The allocator of the device. Counts bytes as CUDA's does, but keeps no memory.
c10::DeviceAllocator& pretend_allocator();

/// The memory of a tensor of the device as a CPU tensor of the same sizes and strides, which keeps
/// it alive. Any other tensor: itself.
at::Tensor seen_by_host(const at::Tensor& tensor);
/// The memory of a CPU tensor, which now belongs to the device; the inverse of seen_by_host.
/// Nothing is copied.
at::Tensor given_to_device(const at::Tensor& tensor);

/// The host waits once more.
/// @param why  an operator, for the trace
void count_wait(const char* why);
void count_upload();
void count_bytes(int64_t up, int64_t down);
/// The device runs an operator.
void count_launch(const std::string& name, const std::vector<std::vector<int64_t>>& sizes = {});
/// The generator of the device, which at::manual_seed() and native_dropout() use.
const at::Generator& pretend_generator();

/// Registrations; each is called once.
void register_pretend_memory();
void register_pretend_operators();
void register_pretend_fallback();

}  // namespace rematch::test
