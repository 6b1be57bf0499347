#pragma once
#include <cstdint>

namespace rematch::kernels {

// A causal convolution of each channel alone, then silu, on rows of bfloat16: model/nn/short_conv.h
// has the meaning. Each function processes one row; sums are float32, from the current token back.

inline constexpr int kMaxConvTaps = 8;

/// The rows that a row reads, or those that read it, the nearest first; null = outside the segment.
template <class T>
struct ConvRows {
  const T* rows[kMaxConvTaps] = {};
  int num_taps = 0;
  const float* taps = nullptr;  ///< [num_taps, width], the current token's first
  int64_t width = 0;
};

/// y = silu(s), where s = Σ taps·x is rounded first.
void half_conv(const ConvRows<uint16_t>& x, uint16_t* y);

/// g_s = g · silu'(s): the gradient of the sums.
void half_conv_silu_gradient(const ConvRows<uint16_t>& x, const uint16_t* g, float* g_s);

/// g_x = Σ taps·g_s
void half_conv_gradient(const ConvRows<float>& g_s, uint16_t* g_x);

}  // namespace rematch::kernels
