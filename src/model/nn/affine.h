#pragma once
#include <ATen/core/Tensor.h>

#include "model/nn/results.h"

namespace rematch {

// Shapes: M rows, K inputs, N outputs.

/// x·wᵀ + b over the last dimension, differentiable; a faster at::linear. Float32 rows on a CPU use
/// oneDNN's product, forward and backward; at::linear uses MKL's, which reaches only half of the
/// peak on processors not made by Intel (bench/README.md). Frozen bfloat16 weights on a
/// CPU have a faster gradient. Few rows, other dtypes and other devices use at::linear.
/// @param x       [..., K]
/// @param weight  [N, K]
/// @param bias    [N] or undefined
/// @param results  kUnread: zeros in place of the product where possible, with its gradients
/// @return        [..., N]
at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                  Results results = Results::kRead);

/// Limits the caches of oneDNN and of torch's oneDNN layer. By default they keep code and memory
/// for the last 1024 shapes, which doubles the memory of training when row lengths do not recur.
/// Call it first in main(). The environment variables ONEDNN_PRIMITIVE_CACHE_CAPACITY and
/// LRU_CACHE_CAPACITY take precedence.
void bound_onednn_caches();

/// x·wᵀ without autograd, for callers that compute their own gradients. Views are allowed;
/// transposed views need no copy.
/// @param x_MK, w_NK  float32, two dimensions
at::Tensor product_MN(const at::Tensor& x_MK, const at::Tensor& w_NK);

}  // namespace rematch
