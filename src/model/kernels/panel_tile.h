#pragma once
#include <cstdint>

#include "model/kernels/gemm.h"
#include "model/kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// Steps along K between two checks of the count.
inline constexpr int kUnrolled = 4;
inline constexpr int64_t kLineBytes = 64;

/// Prefetches into L2: it allows more outstanding prefetches than L1, and x needs L1. Prefetching
/// into L1 reduces the read bandwidth of products of eight or more rows by a third (Zen 4;
/// bench/README.md).
inline void prefetch_to_l2(const void* at) { __builtin_prefetch(at, 0, 2); }

/// Operands of a tile, and the memory that it prefetches.
template <class W>
struct TileInput {
  const W* w = nullptr;         ///< the first of its registers at the first k
  int64_t panel_stride = 0;     ///< values from one panel to the next
  const float* x = nullptr;     ///< [count, MR]
  int64_t count = 0;            ///< steps along K
  bool begins = true;           ///< starts a new sum; else continues one
  int64_t own_ahead = 0;        ///< > 0: prefetches the tile's own weights this many values ahead
  const char* ahead = nullptr;  ///< other memory to prefetch:
  int64_t lines_ahead = 0;      ///< this many cache lines,
  int64_t lines_a_step = 0;     ///< this many every kUnrolled steps
};

/// MR rows of x times NV registers of outputs. Each output is summed in its own lane in ascending
/// order of k, so its bits depend only on its two rows, not on MR or NV.
/// @param sums  [MR, NV registers]; read unless the sum begins
template <class V, class W, int MR, int NV>
void panel_tile(const TileInput<W>& in, float* sums) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  constexpr int kRegistersOfPanel = static_cast<int>(kPanel) / L;
  const float* x = in.x;
  const W* w = in.w;
  const char *ahead = in.ahead, *const ahead_end = ahead + in.lines_ahead * kLineBytes;
  F acc[MR][NV];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v)
      acc[m][v] = in.begins ? V::zero() : V::load(sums + (m * NV + v) * L);
  }
  const auto step = [&](int u) __attribute__((always_inline)) {
    // keeps GCC from loading more steps at once than fit into registers
    asm volatile("" ::: "memory");
    F values[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      values[v] = V::load(w + (v / kRegistersOfPanel) * in.panel_stride + u * kPanel +
                          (v % kRegistersOfPanel) * L);
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const F row = V::set1(x[u * MR + m]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) acc[m][v] = V::fma(row, values[v], acc[m][v]);
    }
  };
  int64_t k = 0;
  for (; k + kUnrolled <= in.count; k += kUnrolled) {
    if (in.own_ahead > 0) {
#pragma GCC unroll 4
      for (int u = 0; u < kUnrolled; ++u) {
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) {
          prefetch_to_l2(w + in.own_ahead + (v / kRegistersOfPanel) * in.panel_stride + u * kPanel +
                         (v % kRegistersOfPanel) * L);
        }
      }
    } else if (ahead < ahead_end) {
      for (int64_t i = 0; i < in.lines_a_step; ++i, ahead += kLineBytes) prefetch_to_l2(ahead);
    }
#pragma GCC unroll 4
    for (int u = 0; u < kUnrolled; ++u) step(u);
    w += kUnrolled * kPanel;
    x += kUnrolled * MR;
  }
  for (; k < in.count; ++k) {
    step(0);
    w += kPanel;
    x += MR;
  }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) V::store(sums + (m * NV + v) * L, acc[m][v]);
  }
}

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTileRegisters = 4;

/// True if sums, weights and one value of x fit into the registers.
template <class V>
constexpr bool tile_fits(int rows, int registers) {
  return rows * registers + registers + 1 <= V::kRegisters;
}

/// Largest number of rows of x with sums that fit next to `registers` of weights.
template <class V>
constexpr int tile_rows(int registers) {
  int rows = kMaxTileRows;
  while (!tile_fits<V>(rows, registers)) --rows;
  return rows;
}

template <class W>
using PanelTile = void (*)(const TileInput<W>& in, float* sums);

/// The tile functions by rows and registers (2 and 4); null if there are too few registers.
template <class V, class W>
struct PanelTiles {
  PanelTile<W> functions[kMaxTileRows + 1][kMaxTileRegisters + 1] = {};

  constexpr PanelTiles() { fill<1>(); }

 private:
  template <int MR>
  constexpr void fill() {
    if constexpr (tile_fits<V>(MR, 2)) functions[MR][2] = panel_tile<V, W, MR, 2>;
    if constexpr (tile_fits<V>(MR, 4)) functions[MR][4] = panel_tile<V, W, MR, 4>;
    if constexpr (MR < kMaxTileRows) fill<MR + 1>();
  }
};

}  // namespace rematch::kernels
