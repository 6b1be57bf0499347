#pragma once
#include <cstdint>

#include "model/kernels/types.h"

namespace rematch::kernels {

// Each function processes one row of activations; the order of a sum depends only on the row's
// length.

/// y = x / sqrt(mean(x²) + eps) · weight over `width` values. y may be x.
void rms_norm(const float* x, const float* weight, int64_t width, float eps, float* y);

/// y = (x − mean) / sqrt(variance + eps) · weight + bias. y may be x.
void layer_norm(const float* x, const float* weight, const float* bias, int64_t width, float eps,
                float* y);

/// Rotates the halves of a head in place (NeoX): x·cos + rotate_half(x)·sin.
/// @param cos,sin  [width / 2]
void rotate(float* x, const float* cos, const float* sin, int64_t width);

/// x = x + y
void add(float* x, const float* y, int64_t width);

/// gate = gate / (1 + e^-gate) · up
void silu_mul(float* gate, const float* up, int64_t width);

/// x = x / (1 + e^-gate)
void sigmoid_mul(float* x, const float* gate, int64_t width);

/// x = GELU(x) in its tanh form.
void gelu_tanh(float* x, int64_t width);

/// x = GELU(x) = x·(1 + erf(x/√2))/2, erf to 2e-7.
void gelu_erf(float* x, int64_t width);

/// y = e^x, relative error at most 2^-22 for |x| ≤ 87; x below -87.3 gives 0, x above 88 gives
/// e^88.
void exp(const float* x, int64_t width, float* y);

/// Reads a row once. Relative error of the sum at most 2^-20.
SoftmaxSum softmax_sum(const float* x, int64_t width);

/// Stores floats as `storage`, rounded to nearest even.
void store_as(const float* x, int64_t width, Storage storage, void* out);

/// Reads `width` stored values.
void load_from(const void* x, Storage storage, int64_t width, float* out);

}  // namespace rematch::kernels
