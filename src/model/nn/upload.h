#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// Copies a tensor that the host makes at every step to `device` without waiting: the copy is
/// queued from page-locked memory, which torch keeps until it is done. Falls back to an ordinary
/// copy if page-locked memory is unavailable. Returns a tensor that is already on `device`
/// unchanged.
at::Tensor upload(const at::Tensor& host, const at::Device& device);

/// Index values on `device`, int64 [values.size()], copied as by upload().
at::Tensor upload_index(const std::vector<int64_t>& values, const at::Device& device);

}  // namespace rematch
