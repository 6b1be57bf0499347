#pragma once
#include <cstdint>

#include "kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// What a tile fetches for later while it computes: other rows of the same length, or its own, some way ahead.
struct Ahead {
  const char* rows = nullptr;  ///< `count` of them, value by value
  int64_t stride = 0;          ///< bytes
  int count = 0;
  int64_t own = 0;   ///< > 0: its own rows, this many values ahead
  int64_t jump = 0;  ///< values between the end of the tile's rows and the row that comes after them
};

/// MR rows of x times NR rows of w. Each product keeps one register of partial sums, lane l for the k with k % kLanes == l, ascending,
/// and adds the lanes up in one order: its bits depend on the two rows alone, whatever MR and NR.
/// @param w     NR rows of k values
/// @param x     MR rows, `ldx` floats apart
/// @param tile  [MR, NR], padded to a multiple of four
template <class V, class W, int MR, int NR>
void dot_tile(const W* const* w, const Ahead& ahead, const float* x, int64_t ldx, int64_t k, float* tile) {
  using F = typename V::F;
  constexpr int kPadded = (MR * NR + 3) / 4 * 4;
  F sums[kPadded];
#pragma GCC unroll 32
  for (int i = 0; i < kPadded; ++i) sums[i] = V::zero();
  const W* rows[NR];
#pragma GCC unroll 8
  for (int n = 0; n < NR; ++n) rows[n] = w[n];
  const int64_t whole = k - k % V::kLanes;
  for (int64_t i = 0; i < whole; i += V::kLanes) {
    F values[NR];
#pragma GCC unroll 8
    for (int n = 0; n < NR; ++n) values[n] = V::load(rows[n] + i);
    const char* line = ahead.rows + i * static_cast<int64_t>(sizeof(W));
    for (int p = 0; p < ahead.count; ++p, line += ahead.stride) __builtin_prefetch(line);
    if (ahead.own > 0) {
      const int64_t later = i + ahead.own < k ? i + ahead.own : i + ahead.own + ahead.jump;
#pragma GCC unroll 8
      for (int n = 0; n < NR; ++n) __builtin_prefetch(rows[n] + later);
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
      const F row = V::load(x + m * ldx + i);
#pragma GCC unroll 8
      for (int n = 0; n < NR; ++n) sums[m * NR + n] = V::fma(row, values[n], sums[m * NR + n]);
    }
  }
  if (whole < k) {
    const int rest = static_cast<int>(k - whole);
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
      const F row = V::load(x + m * ldx + whole, rest);
#pragma GCC unroll 8
      for (int n = 0; n < NR; ++n) sums[m * NR + n] = V::fma(row, V::load(rows[n] + whole, rest), sums[m * NR + n]);
    }
  }
  V::template sum_each<kPadded>(sums, tile);
}

inline constexpr int kMaxTileRows = 8;
inline constexpr int kMaxTileColumns = 8;

/// Largest tile that fits the registers: one for a row of x, NR for w, the rest for sums. (With one row w goes into the sums at once.)
template <class V>
constexpr bool tile_fits(int rows, int columns) {
  return rows * columns + (rows > 1 ? columns : 0) + 1 <= V::kRegisters;
}

/// How many rows of w go with a tile of `rows` rows of x: as many as fit, fours where possible because lanes are added up in fours.
template <class V>
constexpr int tile_columns(int rows) {
  constexpr int kChoices[] = {8, 4, 3, 2};
  for (const int columns : kChoices) {
    if (tile_fits<V>(rows, columns)) return columns;
  }
  return 1;
}

template <class W>
using DotTile = void (*)(const W* const* w, const Ahead& ahead, const float* x, int64_t ldx, int64_t k, float* tile);

/// The tile functions by their sizes; null where the registers do not suffice.
template <class V, class W>
struct DotTiles {
  DotTile<W> of[kMaxTileRows + 1][kMaxTileColumns + 1] = {};

  constexpr DotTiles() { fill<1, 1>(); }

 private:
  template <int MR, int NR>
  constexpr void fill() {
    if constexpr (tile_fits<V>(MR, NR)) of[MR][NR] = dot_tile<V, W, MR, NR>;
    if constexpr (NR < kMaxTileColumns) {
      fill<MR, NR + 1>();
    } else if constexpr (MR < kMaxTileRows) {
      fill<MR + 1, 1>();
    }
  }
};

}  // namespace rematch::kernels
