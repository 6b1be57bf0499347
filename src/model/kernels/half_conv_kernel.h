#pragma once
#include "model/kernels/half_conv.h"
#include "model/kernels/half_norms_kernel.h"

// Template over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

template <class V>
struct HalfConvKernel {
  using F = typename V::F;
  static constexpr int L = V::kLanes;

  /// Calls body(first channel, channels) for every register of a row.
  template <class Body>
  static void for_channels(int64_t width, const Body& body) {
    for (int64_t i = 0; i < width; i += L) body(i, static_cast<int>(width - i < L ? width - i : L));
  }

  template <class T>
  static F sum_of(const ConvRows<T>& x, int64_t i, int n) {
    F sum = V::zero();
    for (int j = 0; j < x.num_taps; ++j) {
      if (x.rows[j] == nullptr) continue;
      const float* const taps = x.taps + j * x.width + i;
      sum = n == L ? V::fma(V::load(x.rows[j] + i), V::load(taps), sum)
                   : V::fma(V::load(x.rows[j] + i, n), V::load(taps, n), sum);
    }
    return sum;
  }

  static void conv(const ConvRows<uint16_t>& x, uint16_t* y) {
    for_channels(x.width, [&](int64_t i, int n) {
      const F s = HalfNormKernel<V>::round_half(sum_of(x, i, n));
      V::store(y + i, V::mul(s, HalfNormKernel<V>::silu_factor(s)), n);
    });
  }

  static void silu_gradient(const ConvRows<uint16_t>& x, const uint16_t* g, float* g_s) {
    for_channels(x.width, [&](int64_t i, int n) {
      const F s = HalfNormKernel<V>::round_half(sum_of(x, i, n));
      V::store(g_s + i, V::mul(V::load(g + i, n), HalfNormKernel<V>::silu_slope(s)), n);
    });
  }

  static void gradient(const ConvRows<float>& g_s, uint16_t* g_x) {
    for_channels(g_s.width, [&](int64_t i, int n) { V::store(g_x + i, sum_of(g_s, i, n), n); });
  }
};

}  // namespace rematch::kernels
