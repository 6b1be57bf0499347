#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// True if fused_conv() takes these tensors: bfloat16 on a CPU, with frozen weights.
bool has_fused_conv(const at::Tensor& x_TC, const at::Tensor& weight_C1J);

/// short_conv() in one pass over memory forward and two backward (model/kernels/half_conv.h).
/// Differentiable; keeps only its input.
at::Tensor fused_conv(const at::Tensor& x_TC, const at::Tensor& weight_C1J,
                      const std::vector<int64_t>& segment_lens);

}  // namespace rematch
