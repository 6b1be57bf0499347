#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// `host` on `device`, without a wait: the copy is queued from page-locked memory, which torch
/// keeps until it is done. Where such memory is refused, an ordinary copy. A tensor that is there
/// already is returned as it is. Use it for what the host makes at every step.
at::Tensor upload(const at::Tensor& host, const at::Device& device);

/// Index values on `device`, int64 [values.size()], uploaded in the same way.
at::Tensor upload_index(const std::vector<int64_t>& values, const at::Device& device);

}  // namespace rematch
