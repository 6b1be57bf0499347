#pragma once
#include <ATen/core/Tensor.h>

namespace rematch {

/// True if fused_attention() takes these tensors: bfloat16 on a CPU that multiplies it, heads of a
/// multiple of 16, as many keys as queries.
bool has_fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// Attention by the kernels of model/kernels/bfloat16_attention.h; scale D^-0.5. Differentiable;
/// keeps its inputs, its output and one float a query. torch's own operator multiplies bfloat16 by
/// MKL, which is four times as slow on processors not made by Intel.
/// @param q    [B, nq, T, D]
/// @param k,v  [B, nkv, T, D], nq a multiple of nkv
/// @return     [B, nq, T, D], stored as [B, T, nq, D]
at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           bool is_causal);

}  // namespace rematch
