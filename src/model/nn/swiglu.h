#pragma once
#include <ATen/core/Tensor.h>

namespace rematch {

/// silu(gate) · up, differentiable. On a device autograd keeps only gate and up.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace rematch
