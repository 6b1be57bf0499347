#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "model/kernels/bfloat16_attention.h"

// Products of bfloat16 matrices with float32 sums, on AVX-512 BF16. Included by one file, which is
// compiled for it; unnamed, so that no other file gets this code.
//
// The right side of a product is packed in panels of 16 columns; a panel holds, for each pair of
// inputs, 16 columns of two values: what one instruction reads.

namespace rematch::kernels {
namespace {

constexpr int64_t kPanelColumns = 16;
constexpr int64_t kTileRows = 4;  ///< rows of the left side come in multiples of this

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Packed columns.
struct Panels {
  const uint16_t* data = nullptr;
  int64_t stride = 0;  ///< values from one panel to the next
};

enum class Sum { kStore, kAdd };

/// kTileRows rows times P panels.
template <int P>
void multiply_tile(const ConstHalfRows& a, const Panels& b, int64_t num_pairs, float* c,
                   int64_t c_stride, Sum sum) {
  constexpr int R = static_cast<int>(kTileRows);
  __m512 sums[R][P];
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) {
      sums[r][p] = sum == Sum::kAdd ? _mm512_loadu_ps(c + r * c_stride + p * kPanelColumns)
                                    : _mm512_setzero_ps();
    }
  }
  for (int64_t pair = 0; pair < num_pairs; ++pair) {
    __m512i columns[P];
    for (int p = 0; p < P; ++p)
      columns[p] = _mm512_loadu_si512(b.data + p * b.stride + pair * 2 * kPanelColumns);
    for (int r = 0; r < R; ++r) {
      int32_t two;
      std::memcpy(&two, a.row(r) + 2 * pair, sizeof(two));
      const auto row = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
      for (int p = 0; p < P; ++p)
        sums[r][p] = _mm512_dpbf16_ps(sums[r][p], row, reinterpret_cast<__m512bh>(columns[p]));
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) _mm512_storeu_ps(c + r * c_stride + p * kPanelColumns, sums[r][p]);
  }
}

/// c = a·b or c += a·b. @param num_rows  a multiple of kTileRows; @param num_inputs  even
void multiply(const ConstHalfRows& a, int64_t num_rows, const Panels& b, int64_t num_panels,
              int64_t num_inputs, float* c, int64_t c_stride, Sum sum) {
  for (int64_t panel = 0; panel < num_panels; panel += 4) {
    const Panels part{b.data + panel * b.stride, b.stride};
    for (int64_t row = 0; row < num_rows; row += kTileRows) {
      const ConstHalfRows rows{a.row(row), a.stride};
      float* const to = c + row * c_stride + panel * kPanelColumns;
      switch (num_panels - panel) {
        case 1: multiply_tile<1>(rows, part, num_inputs / 2, to, c_stride, sum); break;
        case 2: multiply_tile<2>(rows, part, num_inputs / 2, to, c_stride, sum); break;
        case 3: multiply_tile<3>(rows, part, num_inputs / 2, to, c_stride, sum); break;
        default: multiply_tile<4>(rows, part, num_inputs / 2, to, c_stride, sum);
      }
    }
  }
}

/// Rows become columns: panel p holds rows 16·p …, zeros after the last row.
/// @param out  [⌈num_rows / 16⌉][width / 2][16][2]
void pack_as_columns(const ConstHalfRows& x, int64_t num_rows, int64_t width, uint16_t* out) {
  const int64_t num_pairs = width / 2;
  for (int64_t row = 0; row < round_up(num_rows, kPanelColumns); ++row) {
    uint16_t* to = out + row / kPanelColumns * kPanelColumns * width + row % kPanelColumns * 2;
    for (int64_t pair = 0; pair < num_pairs; ++pair, to += 2 * kPanelColumns) {
      if (row < num_rows) {
        std::memcpy(to, x.row(row) + 2 * pair, 4);
      } else {
        std::memset(to, 0, 4);
      }
    }
  }
}

/// Sixteen columns of two rows, side by side.
__m512i interleave_rows(const uint16_t* first, const uint16_t* second) {
  const auto wide = [](const uint16_t* x) {
    return x == nullptr
               ? _mm512_setzero_si512()
               : _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  };
  return _mm512_or_si512(wide(first), _mm512_slli_epi32(wide(second), 16));
}

/// Rows are the inputs of a product: panel p holds columns 16·p ….
/// @param stride  values from one panel of `out` to the next: 16 · rows, or more
void pack_as_inputs(const ConstHalfRows& x, int64_t num_rows, int64_t width, uint16_t* out,
                    int64_t stride) {
  for (int64_t panel = 0; panel < width / kPanelColumns; ++panel) {
    const int64_t column = panel * kPanelColumns;
    for (int64_t row = 0; row < num_rows; row += 2) {
      const uint16_t* const second = row + 1 < num_rows ? x.row(row + 1) + column : nullptr;
      _mm512_storeu_si512(out + panel * stride + row * kPanelColumns,
                          interleave_rows(x.row(row) + column, second));
    }
  }
}

/// out[column][row] = x[row][column]. @param num_rows  even
void transpose(const ConstHalfRows& x, int64_t num_rows, int64_t width, uint16_t* out) {
  const __m512i lanes =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(static_cast<int>(num_rows)));
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    for (int64_t row = 0; row < num_rows; row += 2) {
      _mm512_i32scatter_epi32(out + column * num_rows + row, lanes,
                              interleave_rows(x.row(row) + column, x.row(row + 1) + column), 2);
    }
  }
}

/// Rounds 16 values to bfloat16.
void store_half(uint16_t* to, __m512 x) {
  const __m256bh halves = _mm512_cvtneps_pbh(x);
  std::memcpy(to, &halves, sizeof(halves));
}

__m512 load_half(const uint16_t* x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))), 16));
}

}  // namespace
}  // namespace rematch::kernels
