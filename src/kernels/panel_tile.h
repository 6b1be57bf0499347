#pragma once
#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// This many products are added one after the other; their sums are added up in order. Fewer would cost time, more would cost digits.
inline constexpr int64_t kChain = 512;
/// Steps along K that are taken without looking at the count.
inline constexpr int kUnrolled = 4;

/// To the L2 cache: more fetches can be on their way there than to L1, which x needs for itself. With fetches to L1 products of eight rows
/// and more read a third less a second (Zen 4; docs/native.md).
inline void prefetch_to_l2(const void* at) { __builtin_prefetch(at, 0, 2); }

/// What a tile multiplies, and what it fetches for later.
template <class W>
struct TileInput {
  const W* w = nullptr;           ///< the first of its registers at k = 0
  int64_t panel_stride = 0;       ///< values from one panel to the next
  const float* x = nullptr;       ///< MR rows
  int64_t x_stride = 0;           ///< floats
  int64_t num_inputs = 0;         ///< K
  int64_t own_ahead = 0;          ///< > 0: the tile's weights are fetched this many values ahead
  const char* ahead = nullptr;    ///< not null: something else is fetched from here on,
  int64_t ahead_step = 0;         ///< this many bytes for each k
};

/// MR rows of x times NV registers of outputs. Every product is added to one lane, k ascending: its bits depend on the two rows alone,
/// whatever MR and NV.
/// @param sums  [MR, NV registers]
template <class V, class W, int MR, int NV>
void panel_tile(const TileInput<W>& in, float* sums) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  constexpr int kRegistersOfPanel = static_cast<int>(kPanel) / L;
  // Three rows for each address: processors add one or two strides to it at no cost.
  const float* rows[(MR + 2) / 3];
#pragma GCC unroll 8
  for (int m = 0; m < MR; m += 3) rows[m / 3] = in.x + m * in.x_stride;
  const int64_t x_stride = in.x_stride;
  const W* w = in.w;
  const char* ahead = in.ahead;
  for (int64_t begin = 0; begin < in.num_inputs; begin += kChain) {
    const int64_t left = in.num_inputs - begin, count = left < kChain ? left : kChain;
    F acc[MR][NV];
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) acc[m][v] = V::zero();
    }
    const auto step = [&](int u) __attribute__((always_inline)) {
      F values[NV];
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) {
        values[v] = V::load(w + (v / kRegistersOfPanel) * in.panel_stride + u * kPanel + (v % kRegistersOfPanel) * L);
      }
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) {
        const F row = V::set1(rows[m / 3][(m % 3) * x_stride + u]);
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) acc[m][v] = V::fma(row, values[v], acc[m][v]);
      }
    };
    const auto advance = [&](int by) __attribute__((always_inline)) {
      w += by * kPanel;
#pragma GCC unroll 8
      for (int m = 0; m < MR; m += 3) rows[m / 3] += by;
    };
    int64_t k = 0;
    for (; k + kUnrolled <= count; k += kUnrolled) {
      if (in.own_ahead > 0) {
#pragma GCC unroll 4
        for (int u = 0; u < kUnrolled; ++u) {
#pragma GCC unroll 8
          for (int v = 0; v < NV; ++v) {
            prefetch_to_l2(w + in.own_ahead + (v / kRegistersOfPanel) * in.panel_stride + u * kPanel + (v % kRegistersOfPanel) * L);
          }
        }
      } else if (ahead != nullptr) {
#pragma GCC unroll 4
        for (int u = 0; u < kUnrolled; ++u) {
          prefetch_to_l2(ahead);
          ahead += in.ahead_step;
        }
      }
#pragma GCC unroll 4
      for (int u = 0; u < kUnrolled; ++u) step(u);
      advance(kUnrolled);
    }
    for (; k < count; ++k) {
      step(0);
      advance(1);
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) {
        float* const sum = sums + (m * NV + v) * L;
        V::store(sum, begin == 0 ? acc[m][v] : V::add(V::load(sum), acc[m][v]));
      }
    }
  }
}

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTileRegisters = 4;

/// Whether sums, weights and one value of x fit the registers.
template <class V>
constexpr bool tile_fits(int rows, int registers) {
  return rows * registers + registers + 1 <= V::kRegisters;
}

/// Largest number of rows of x whose sums fit beside `registers` of weights.
template <class V>
constexpr int tile_rows(int registers) {
  int rows = kMaxTileRows;
  while (!tile_fits<V>(rows, registers)) --rows;
  return rows;
}

template <class W>
using PanelTile = void (*)(const TileInput<W>& in, float* sums);

/// The tile functions by rows and registers (1, 2 and 4); null where the registers do not suffice.
template <class V, class W>
struct PanelTiles {
  PanelTile<W> of[kMaxTileRows + 1][kMaxTileRegisters + 1] = {};

  constexpr PanelTiles() { fill<1>(); }

 private:
  template <int MR>
  constexpr void fill() {
    if constexpr (tile_fits<V>(MR, 2)) of[MR][2] = panel_tile<V, W, MR, 2>;
    if constexpr (tile_fits<V>(MR, 4)) of[MR][4] = panel_tile<V, W, MR, 4>;
    if constexpr (MR < kMaxTileRows) fill<MR + 1>();
  }
};

}  // namespace rematch::kernels
