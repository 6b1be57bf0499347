#pragma once
#include <ATen/core/Tensor.h>

namespace rematch {

// Products of many small float32 matrices, one for each index of the leading dimensions, which both
// sides share. Without autograd. On a CPU by model/kernels/product.h: MKL reaches less than half of
// its speed on processors not made by Intel. Elsewhere by at::matmul.

/// a·b: [..., M, K]·[..., K, N] → [..., M, N], contiguous.
at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b);

/// sum += sign·a·b. @param sum  [B, M, N], contiguous; @param sign  1 or -1
/// @return  sum
at::Tensor add_batched_product(at::Tensor sum, const at::Tensor& a, const at::Tensor& b,
                               double sign = 1);

}  // namespace rematch
