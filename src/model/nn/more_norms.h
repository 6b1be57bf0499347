#pragma once
#include <ATen/core/Tensor.h>

namespace rematch {

// RMSNorms of other forms than rms_norm() in layers.h. Over the last dimension, differentiable, in
// the dtype of x; both keep little more than their inputs.

/// x̂ · (1 + weight), computed in float32 and rounded once.
at::Tensor offset_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// (weight · x̂) · silu(gate): x̂ is rounded to x's dtype before the product with the weight, the
/// product with the gate is computed in float32 and rounded once.
/// @param gate  same shape as x
at::Tensor gated_rms_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                          double eps);

}  // namespace rematch
