#pragma once
#include <cstdint>

namespace rematch::kernels {

// RMSNorms of rows of bfloat16 with their gradients, computed in float32. Each function processes
// one row of `width` values; the order of a sum depends only on the width. x̂ = x / rms(x).

/// The factor of x̂, and where the result is rounded.
enum class NormForm {
  kPlain,   ///< weight · x̂, where x̂ is rounded first
  kOffset,  ///< (1 + weight) · x̂
};

/// A row and the weight of its norm.
struct HalfNormRow {
  const uint16_t* x = nullptr;
  const uint16_t* weight = nullptr;
  int64_t width = 0;
  float eps = 0;
  NormForm form = NormForm::kPlain;
};

void half_norm(const HalfNormRow& row, uint16_t* y);

/// Gradient of x for the gradient of y.
void half_norm_gradient(const HalfNormRow& row, const uint16_t* g, uint16_t* g_x);

/// y = weight · x̂ · silu(gate): x̂ and its product with the weight are rounded first.
void half_gated_norm(const HalfNormRow& row, const uint16_t* gate, uint16_t* y);

/// Gradients of x and gate for the gradient of y.
void half_gated_norm_gradient(const HalfNormRow& row, const uint16_t* gate, const uint16_t* g,
                              uint16_t* g_x, uint16_t* g_gate);

}  // namespace rematch::kernels
