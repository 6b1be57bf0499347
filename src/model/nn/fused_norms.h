#pragma once
#include <ATen/ATen.h>

namespace rematch {

// Norms of bfloat16 rows with frozen weights on a CPU, in one pass over memory forward and one
// backward (model/kernels/half_norms.h). They keep only their inputs.

/// True if the functions below take these tensors.
bool has_fused_norm(const at::Tensor& x, const at::Tensor& weight);

enum class FusedNormForm {
  kPlain,   ///< as rms_norm()
  kOffset,  ///< as offset_rms_norm()
};
at::Tensor fused_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                      FusedNormForm form);

/// As gated_rms_norm(). @param gate  bfloat16
at::Tensor fused_gated_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                            double eps);

}  // namespace rematch
