#pragma once
#include <algorithm>
#include <memory>

#include "model/kernels/product.h"

// Template over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

template <class V>
struct ProductKernel {
  using F = typename V::F;
  static constexpr int L = V::kLanes;
  static constexpr int kRows = 4;
  /// Registers of a row: with kRows rows half of all registers hold sums.
  static constexpr int kWide = V::kRegisters / (2 * kRows);

  const Strided a;
  const float* b;  ///< [inputs, columns]
  const ProductSize size;
  const float sign;
  const bool adds;
  float* const c;

  static void run(const Strided& a, const Strided& b, const ProductSize& size, float sign,
                  bool adds, float* c) {
    std::unique_ptr<float[]> copy;
    const float* rows = b.data;
    if (b.column_stride != 1 || b.row_stride != size.columns) {
      copy.reset(new float[size.inputs * size.columns]);
      turn(b, size, copy.get());
      rows = copy.get();
    }
    ProductKernel{a, rows, size, sign, adds, c}.run_columns();
  }

  /// A copy of b by rows, in squares that stay in the first cache.
  static void turn(const Strided& b, const ProductSize& size, float* to) {
    constexpr int64_t kSide = 16;
    for (int64_t j = 0; j < size.columns; j += kSide) {
      const int64_t end = std::min(size.columns, j + kSide);
      for (int64_t k = 0; k < size.inputs; ++k) {
        for (int64_t column = j; column < end; ++column)
          to[k * size.columns + column] = b.at(k, column);
      }
    }
  }

  void run_columns() const {
    int64_t j = 0;
    for (; j + kWide * L <= size.columns; j += kWide * L) run_rows<kWide, true>(j, L);
    for (; j + L <= size.columns; j += L) run_rows<1, true>(j, L);
    if (j < size.columns) run_rows<1, false>(j, static_cast<int>(size.columns - j));
  }

  template <int P, bool is_whole>
  void run_rows(int64_t j, int lanes) const {
    int64_t i = 0;
    for (; i + kRows <= size.rows; i += kRows) run_tile<kRows, P, is_whole>(i, j, lanes);
    for (; i < size.rows; ++i) run_tile<1, P, is_whole>(i, j, lanes);
  }

  /// R rows of P registers. @param lanes  of a register that is not whole
  template <int R, int P, bool is_whole>
  void run_tile(int64_t i, int64_t j, int lanes) const {
    F sums[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) sums[r][p] = V::zero();
    }
    // Without inputs there may be no data to point at.
    const float* left = size.inputs > 0 ? a.data + i * a.row_stride : nullptr;
    const float* right = size.inputs > 0 ? b + j : nullptr;
    for (int64_t k = 0; k < size.inputs; ++k, left += a.column_stride, right += size.columns) {
      F x[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) x[p] = is_whole ? V::load(right + p * L) : V::load(right, lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F by = V::set1(left[r * a.row_stride]);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) sums[r][p] = V::fma(by, x[p], sums[r][p]);
      }
    }
    const F factor = V::set1(sign);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float* const to = c + (i + r) * size.columns + j;
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        if (is_whole) {
          const F before = adds ? V::load(to + p * L) : V::zero();
          V::store(to + p * L, V::fma(factor, sums[r][p], before));
        } else {
          const F before = adds ? V::load(to, lanes) : V::zero();
          V::store(to, V::fma(factor, sums[r][p], before), lanes);
        }
      }
    }
  }
};

}  // namespace rematch::kernels
