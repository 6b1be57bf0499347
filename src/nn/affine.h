#pragma once
#include <ATen/ATen.h>

namespace rematch {

// Shapes: M rows, K inputs, N outputs.

/// x·wᵀ + b over the last dimension, differentiable; at::linear, but faster. Float32 rows on a CPU
/// use oneDNN's product, forward and backward: at::linear uses MKL's, which on processors that are
/// not Intel's reaches half of the multiply peak (bench/README.md). Everything else (few rows,
/// other dtypes and devices) is at::linear.
/// @param x       [..., K]
/// @param weight  [N, K]
/// @param bias    [N] or undefined
/// @return        [..., N]
at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// Stops oneDNN and torch's layer over it from caching code and memory for the last 1024 shapes:
/// for row lengths that do not recur, this doubles the memory of training. Call it first in main().
/// Values in the user's environment (ONEDNN_PRIMITIVE_CACHE_CAPACITY, LRU_CACHE_CAPACITY) take
/// precedence.
void bound_onednn_caches();

/// The same product without autograd and bias, for callers that compute their own gradients. Views
/// are legal, transposed ones are free.
/// @param x_MK, w_NK  float32, two dimensions
at::Tensor product_MN(const at::Tensor& x_MK, const at::Tensor& w_NK);

}  // namespace rematch
