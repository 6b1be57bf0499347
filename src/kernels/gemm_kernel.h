#pragma once
#include "kernels/dot_tile.h"
#include "kernels/gemm.h"
#include "kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// Up to this many rows of x the weights come from memory and are used at once; above, a block of them is kept in the L2 cache.
inline constexpr int64_t kStreamedRows = 40;
inline constexpr int64_t kWeightBlockBytes = 256 * 1024;
inline constexpr int64_t kPrefetchBytes = 2048;

template <class V, class W>
struct GemmKernel {
  static constexpr DotTiles<V, W> kTiles{};
  static constexpr int kGroupRows = V::kRegisters >= 32 ? 6 : 4;  // with 4 and 3 columns: the least loads for a product
  static constexpr int kGroupColumns = tile_columns<V>(kGroupRows);

  static void run(const Weights& weights, const ConstRows& x, int64_t num_rows, const Rows& y, Range columns, Into into) {
    const GemmKernel kernel{weights, x, y, into};
    const int64_t num_groups = (num_rows + kGroupRows - 1) / kGroupRows;
    const int64_t largest = (num_rows + num_groups - 1) / num_groups;
    const int num_columns = tile_columns<V>(static_cast<int>(largest));
    if (num_rows <= kStreamedRows) {
      kernel.block(num_rows, num_groups, columns, num_columns, true);
      return;
    }
    int64_t block = kWeightBlockBytes / (weights.num_inputs * static_cast<int64_t>(sizeof(W)));
    block = block < 2 * num_columns ? 2 * num_columns : block - block % num_columns;
    for (int64_t begin = columns.begin; begin < columns.end; begin += block) {
      const int64_t end = begin + block < columns.end ? begin + block : columns.end;
      kernel.block(num_rows, num_groups, {begin, end}, num_columns, false);
    }
  }

  /// All rows times some columns; one of the two loops is the inner one.
  void block(int64_t num_rows, int64_t num_groups, Range columns, int num_columns, bool columns_first) const {
    if (columns_first) {
      for (int64_t n = columns.begin; n < columns.end; n += num_columns) {
        for (int64_t group = 0; group < num_groups; ++group) tile(num_rows, num_groups, group, n, columns.end, num_columns, group == 0);
      }
    } else {
      for (int64_t group = 0; group < num_groups; ++group) {
        for (int64_t n = columns.begin; n < columns.end; n += num_columns) {
          tile(num_rows, num_groups, group, n, columns.end, num_columns, group == 0);
        }
      }
    }
  }

  void tile(int64_t num_rows, int64_t num_groups, int64_t group, int64_t first_column, int64_t end_column, int num_columns,
            bool is_new) const {
    const int64_t begin = num_rows * group / num_groups, end = num_rows * (group + 1) / num_groups;
    const int64_t left = end_column - first_column;
    const int nr = left < num_columns ? static_cast<int>(left) : num_columns;
    const int mr = static_cast<int>(end - begin);
    const W* rows[kMaxTileColumns];
    const W* data = static_cast<const W*>(weights.data) + first_column * weights.num_inputs;
    for (int n = 0; n < nr; ++n) rows[n] = data + n * weights.num_inputs;
    // Rows of the next columns, unless they are so long that they would push out what is being read.
    const int64_t next = num_columns * weights.num_inputs;
    const int64_t near = kPrefetchBytes / static_cast<int64_t>(sizeof(W));
    const int64_t prefetch = !is_new ? 0 : next * static_cast<int64_t>(sizeof(W)) <= 32 * 1024 ? next : near;
    alignas(64) float sums[kMaxTileRows * kMaxTileColumns + 4];
    kTiles.of[mr][nr](rows, x.row(begin), x.stride, weights.num_inputs, prefetch, sums);
    for (int m = 0; m < mr; ++m) finish(y.row(begin + m) + first_column, sums + m * nr, first_column, nr);
  }

  void finish(float* out, const float* sums, int64_t first_column, int nr) const {
    for (int n = 0; n < nr; ++n) {
      const float value = weights.bias == nullptr ? sums[n] : sums[n] + weights.bias[first_column + n];
      out[n] = into == Into::kAdd ? out[n] + value : value;
    }
  }

  const Weights& weights;
  const ConstRows& x;
  const Rows& y;
  Into into;
};

}  // namespace rematch::kernels
