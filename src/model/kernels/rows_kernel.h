#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "model/kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// e^x: x = n·ln 2 + r with |r| ≤ ln 2 / 2, e^r by a polynomial of degree 7, n into the exponent.
template <class V>
typename V::F vec_exp(typename V::F x) {
  using F = typename V::F;
  const F clamped = V::max(V::min(x, V::set1(88.0f)), V::set1(-87.3f));
  const F n = V::round(V::mul(clamped, V::set1(1.44269504f)));
  // ln 2 in two parts; the first has few bits, so n times it is exact
  F r = V::fma(n, V::set1(-0.693359375f), clamped);
  r = V::fma(n, V::set1(2.12194440e-4f), r);
  F p = V::set1(1.0f / 5040);
  p = V::fma(p, r, V::set1(1.0f / 720));
  p = V::fma(p, r, V::set1(1.0f / 120));
  p = V::fma(p, r, V::set1(1.0f / 24));
  p = V::fma(p, r, V::set1(1.0f / 6));
  p = V::fma(p, r, V::set1(0.5f));
  p = V::fma(V::mul(p, r), r, V::add(r, V::set1(1.0f)));
  return V::where_at_least(x, V::set1(-87.3f), V::mul(p, V::exp2i(n)));
}

template <class V>
struct RowKernels {
  using F = typename V::F;
  static constexpr int L = V::kLanes;

  /// Calls body(load, store) for every register of a row; the last one may be partial.
  template <class Body>
  static void for_row(int64_t width, const Body& body) {
    int64_t i = 0;
    for (; i + L <= width; i += L) {
      body([&](const float* p) { return V::load(p + i); },
           [&](float* p, F value) { V::store(p + i, value); });
    }
    if (i == width) return;
    const int rest = static_cast<int>(width - i);
    body([&](const float* p) { return V::load(p + i, rest); },
         [&](float* p, F value) { V::store(p + i, value, rest); });
  }

  /// Σ term(register), in four independent sums: each addition waits for the previous one of its
  /// sum.
  template <class Term>
  static float sum_terms(const float* x, int64_t width, const Term& term) {
    F sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    int64_t i = 0;
    for (; i + 4 * L <= width; i += 4 * L) {
      for (int part = 0; part < 4; ++part)
        sums[part] = V::add(sums[part], term(V::load(x + i + part * L), L));
    }
    for (; i + L <= width; i += L) sums[0] = V::add(sums[0], term(V::load(x + i), L));
    if (i < width)
      sums[1] = V::add(
          sums[1], term(V::load(x + i, static_cast<int>(width - i)), static_cast<int>(width - i)));
    return V::sum(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
  }

  static void rms_norm(const float* x, const float* weight, int64_t width, float eps, float* y) {
    const float squares = sum_terms(x, width, [](F value, int) { return V::mul(value, value); });
    const F scale = V::set1(1.0f / std::sqrt(squares / static_cast<float>(width) + eps));
    for_row(width, [&](const auto& load, const auto& store) {
      store(y, V::mul(V::mul(load(x), scale), load(weight)));
    });
  }

  static void layer_norm(const float* x, const float* weight, const float* bias, int64_t width,
                         float eps, float* y) {
    const float mean =
        sum_terms(x, width, [](F value, int) { return value; }) / static_cast<float>(width);
    const F center = V::set1(mean);
    alignas(64) float kept[L];
    const float squares = sum_terms(x, width, [&](F value, int count) {
      F delta = V::sub(value, center);
      if (count < L) {  // lanes after the end of the row hold -mean
        V::store(kept, delta);
        delta = V::load(kept, count);
      }
      return V::mul(delta, delta);
    });
    const F scale = V::set1(1.0f / std::sqrt(squares / static_cast<float>(width) + eps));
    for_row(width, [&](const auto& load, const auto& store) {
      store(y, V::fma(V::mul(V::sub(load(x), center), scale), load(weight), load(bias)));
    });
  }

  static void rotate(float* x, const float* cos, const float* sin, int64_t width) {
    float* const y = x + width / 2;
    for_row(width / 2, [&](const auto& load, const auto& store) {
      const F a = load(x), b = load(y), c = load(cos), s = load(sin);
      store(x, V::sub(V::mul(a, c), V::mul(b, s)));
      store(y, V::add(V::mul(b, c), V::mul(a, s)));
    });
  }

  static void add(float* x, const float* y, int64_t width) {
    for_row(width,
            [&](const auto& load, const auto& store) { store(x, V::add(load(x), load(y))); });
  }

  static void silu_mul(float* gate, const float* up, int64_t width) {
    const F one = V::set1(1.0f);
    for_row(width, [&](const auto& load, const auto& store) {
      const F g = load(gate);
      store(gate, V::mul(V::div(g, V::add(one, vec_exp<V>(V::sub(V::zero(), g)))), load(up)));
    });
  }

  static void sigmoid_mul(float* x, const float* gate, int64_t width) {
    const F one = V::set1(1.0f);
    for_row(width, [&](const auto& load, const auto& store) {
      store(x, V::div(load(x), V::add(one, vec_exp<V>(V::sub(V::zero(), load(gate))))));
    });
  }

  /// x/2·(1 + tanh u) = x / (1 + e^-2u), u = √(2/π)·(x + 0.044715·x³)
  static void gelu_tanh(float* x, int64_t width) {
    const F one = V::set1(1.0f), cubic = V::set1(0.044715f), scale = V::set1(-2.0f * 0.7978845608f);
    for_row(width, [&](const auto& load, const auto& store) {
      const F value = load(x);
      const F u = V::mul(value, V::fma(V::mul(cubic, value), value, one));
      store(x, V::div(value, V::add(one, vec_exp<V>(V::mul(u, scale)))));
    });
  }

  /// erf of |x|/√2 by Abramowitz and Stegun 7.1.26: 1 − (a1·t + … + a5·t⁵)·e^(-x²/2), t = 1
  /// / (1 + p·|x|/√2).
  static void gelu_erf(float* x, int64_t width) {
    constexpr float kA[] = {1.061405429f, -1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f};
    const F zero = V::zero(), one = V::set1(1.0f), half = V::set1(0.5f),
            scale = V::set1(0.3275911f * 0.70710678f);
    for_row(width, [&](const auto& load, const auto& store) {
      const F value = load(x);
      const F t = V::div(one, V::fma(V::max(value, V::sub(zero, value)), scale, one));
      F rest = V::set1(kA[0]);
      for (int i = 1; i < 5; ++i) rest = V::fma(rest, t, V::set1(kA[i]));
      rest = V::mul(V::mul(rest, t), vec_exp<V>(V::mul(V::mul(value, value), V::set1(-0.5f))));
      // left = (1 − erf(|x|/√2))/2: GELU(x)/x is `left` for negative x, else 1 − left.
      const F left = V::mul(half, rest);
      store(x, V::mul(value, V::add(V::where_at_least(value, zero, V::sub(one, V::add(left, left))),
                                    left)));
    });
  }

  static void exp(const float* x, int64_t width, float* y) {
    for_row(width, [&](const auto& load, const auto& store) { store(y, vec_exp<V>(load(x))); });
  }

  /// Values of a block: small enough that it stays in the L1 cache between its two uses.
  static constexpr int64_t kSoftmaxBlock = 1024;

  static SoftmaxSum softmax_sum(const float* x, int64_t width) {
    SoftmaxSum all{.largest = -std::numeric_limits<float>::infinity()};
    const int64_t whole = width / L * L;
    for (int64_t begin = 0; begin < whole; begin += kSoftmaxBlock) {
      const int64_t left = whole - begin;
      add_block(x + begin, left < kSoftmaxBlock ? left : kSoftmaxBlock, all);
    }
    if (whole == width) return all;
    float rest[L];  // padded with values of weight 0
    for (int64_t i = 0; i < L; ++i)
      rest[i] = whole + i < width ? x[whole + i] : std::numeric_limits<float>::lowest();
    add_block(rest, L, all);
    return all;
  }

  /// @param width  a multiple of L
  static void add_block(const float* x, int64_t width, SoftmaxSum& all) {
    F largest = V::set1(all.largest), bad = V::zero();  // 0·x is NaN unless x is finite
    for (int64_t i = 0; i < width; i += L) {
      const F value = V::load(x + i);
      largest = V::max(value, largest);
      bad = V::fma(value, V::zero(), bad);
    }
    all.is_finite = all.is_finite && V::sum(bad) == 0;
    const float before = all.largest;
    all.largest = V::max_lane(largest);
    const F shift = V::set1(all.largest);
    const float sum =
        sum_terms(x, width, [shift](F value, int) { return vec_exp<V>(V::sub(value, shift)); });
    if (all.largest > before) all.sum *= std::exp(static_cast<double>(before) - all.largest);
    all.sum += sum;
  }

  template <class From, class To>
  static void convert(const From* x, int64_t width, To* out) {
    int64_t i = 0;
    for (; i + L <= width; i += L) V::store(out + i, V::load(x + i));
    if (i < width)
      V::store(out + i, V::load(x + i, static_cast<int>(width - i)), static_cast<int>(width - i));
  }
};

}  // namespace rematch::kernels
