#pragma once
#include <ATen/ATen.h>

namespace rematch {

// Shapes: M rows, K inputs, N outputs.

/// x·wᵀ + b over the last dimension, differentiable; what at::linear computes, faster. Float32 rows on a CPU go through oneDNN's product, forward and
/// backward: at::linear takes MKL's, which on processors that are not Intel's reaches half of the multiply peak (bench/README.md).
/// Everything else (few rows, other dtypes and devices) is at::linear.
/// @param x       [..., K]
/// @param weight  [N, K]
/// @param bias    [N] or undefined
/// @return        [..., N]
at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// Keeps oneDNN and torch's layer over it from storing what they prepared for the last 1024 shapes, memory included: as much again as training takes,
/// for row lengths that do not come again. Call it first in main(); where the user's environment says otherwise (ONEDNN_PRIMITIVE_CACHE_CAPACITY,
/// LRU_CACHE_CAPACITY), that holds.
void bound_onednn_caches();

/// The same product without autograd and bias, for who computes gradients himself. Views are legal, transposed ones cost nothing.
/// @param x_MK, w_NK  float32, two dimensions
at::Tensor product_MN(const at::Tensor& x_MK, const at::Tensor& w_NK);

}  // namespace rematch
