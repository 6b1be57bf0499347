#pragma once
#include <cmath>

#include "model/kernels/half_norms.h"
#include "model/kernels/rows_kernel.h"

// Template over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

template <class V>
struct HalfNormKernel {
  using F = typename V::F;
  static constexpr int L = V::kLanes;

  /// Calls body(load, store) for every register of a row; the last one may be partial.
  template <class Body>
  static void for_row(int64_t width, const Body& body) {
    int64_t i = 0;
    for (; i + L <= width; i += L) {
      body([&](const uint16_t* p) { return V::load(p + i); },
           [&](uint16_t* p, F value) { V::store(p + i, value); });
    }
    const auto rest = static_cast<int>(width - i);
    if (rest > 0) {
      body([&](const uint16_t* p) { return V::load(p + i, rest); },
           [&](uint16_t* p, F value) { V::store(p + i, value, rest); });
    }
  }

  /// x, rounded to bfloat16.
  static F round_half(F x) {
    uint16_t halves[L];
    V::store(halves, x);
    return V::load(halves);
  }

  static F silu_factor(F gate) {  // 1 / (1 + e^-gate)
    const F one = V::set1(1.0f);
    return V::div(one, V::add(one, vec_exp<V>(V::sub(V::zero(), gate))));
  }

  static F silu_slope(F x) {  // s·(1 + x·(1 − s)), s = silu_factor(x)
    const F s = silu_factor(x), one = V::set1(1.0f);
    return V::mul(s, V::fma(x, V::sub(one, s), one));
  }

  /// 1 / rms(x)
  static float factor_of(const HalfNormRow& row) {
    F sum = V::zero();
    for_row(row.width, [&](const auto& load, const auto&) {
      const F x = load(row.x);
      sum = V::fma(x, x, sum);
    });
    return 1.0f / std::sqrt(V::sum(sum) / static_cast<float>(row.width) + row.eps);
  }

  static F weight_of(const HalfNormRow& row, F weight) {
    return row.form == NormForm::kOffset ? V::add(weight, V::set1(1.0f)) : weight;
  }

  static void norm(const HalfNormRow& row, uint16_t* y) {
    const F factor = V::set1(factor_of(row));
    for_row(row.width, [&](const auto& load, const auto& store) {
      const F normed = V::mul(load(row.x), factor), weight = weight_of(row, load(row.weight));
      store(y, V::mul(weight, row.form == NormForm::kPlain ? round_half(normed) : normed));
    });
  }

  /// g_x = factor · (h − x̂ · mean(h · x̂)), where h(load) is the gradient of x̂.
  template <class Gradient>
  static void differentiate(const HalfNormRow& row, const Gradient& h, uint16_t* g_x) {
    const float factor = factor_of(row);
    F sum = V::zero();
    for_row(row.width,
            [&](const auto& load, const auto&) { sum = V::fma(h(load), load(row.x), sum); });
    const F by = V::set1(factor),
            shrink = V::set1(V::sum(sum) * factor * factor / static_cast<float>(row.width));
    for_row(row.width, [&](const auto& load, const auto& store) {
      store(g_x, V::mul(by, V::sub(h(load), V::mul(load(row.x), shrink))));
    });
  }

  static void norm_gradient(const HalfNormRow& row, const uint16_t* g, uint16_t* g_x) {
    differentiate(
        row, [&](const auto& load) { return V::mul(load(g), weight_of(row, load(row.weight))); },
        g_x);
  }

  static void gated(const HalfNormRow& row, const uint16_t* gate, uint16_t* y) {
    const F factor = V::set1(factor_of(row));
    for_row(row.width, [&](const auto& load, const auto& store) {
      const F scaled = V::mul(load(row.weight), round_half(V::mul(load(row.x), factor)));
      const F z = load(gate);
      store(y, V::mul(round_half(scaled), V::mul(z, silu_factor(z))));
    });
  }

  static void gated_gradient(const HalfNormRow& row, const uint16_t* gate, const uint16_t* g,
                             uint16_t* g_x, uint16_t* g_gate) {
    differentiate(
        row,
        [&](const auto& load) {
          const F z = load(gate);
          return V::mul(V::mul(load(g), load(row.weight)), V::mul(z, silu_factor(z)));
        },
        g_x);
    const F factor = V::set1(factor_of(row));
    for_row(row.width, [&](const auto& load, const auto& store) {
      const F scaled = V::mul(load(row.weight), V::mul(load(row.x), factor));
      store(g_gate, V::mul(V::mul(load(g), scaled), silu_slope(load(gate))));
    });
  }
};

}  // namespace rematch::kernels
