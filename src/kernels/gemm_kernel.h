#pragma once
#include "kernels/dot_tile.h"
#include "kernels/gemm.h"
#include "kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// From this many groups of rows on, a block of weights stays in the L2 cache for all of them.
inline constexpr int64_t kBlockedGroups = 4;
inline constexpr int64_t kBlockBytes = 128 * 1024;
/// Rows of w up to this long leave room in the L1 cache for more of them at a time, and each row of x is read less often.
inline constexpr int64_t kShortRowBytes = 1024;
inline constexpr int64_t kShortRows = 40;
/// With fewer rows of x the processor's own prefetching is ahead anyway.
inline constexpr int64_t kPrefetchedRows = 3;
/// Rows of w that are used once are fetched this far ahead.
inline constexpr int64_t kBytesAhead = 1024;
/// The next rows of w are fetched while several groups of rows use these, if both fit the L1 cache.
inline constexpr int64_t kMaxNextBytes = 32 * 1024;

/// Blocks of columns, groups of rows, columns: the outer to the inner loop. With a block of one tile's columns weights stream past.
template <class V, class W>
struct GemmKernel {
  static constexpr DotTiles<V, W> kTiles{};
  static constexpr bool kIsWide = V::kRegisters >= 32;
  static constexpr int kGroupRows = kIsWide ? 6 : 4;  // with 4 and 3 columns: the least loads for a product

  static void run(const Weights& weights, const ConstRows& x, int64_t num_rows, const Rows& y, Range columns, Into into) {
    GemmKernel kernel{weights, x, y, columns, into, num_rows, weights.num_inputs * static_cast<int64_t>(sizeof(W))};
    kernel.choose_sizes();
    for (int64_t begin = columns.begin; begin < columns.end; begin += kernel.block_columns) {
      const int64_t end = begin + kernel.block_columns < columns.end ? begin + kernel.block_columns : columns.end;
      for (int64_t group = 0; group < kernel.num_groups; ++group) {
        for (int64_t n = begin; n < end; n += kernel.num_columns) kernel.tile(group, n, end);
      }
    }
  }

  void choose_sizes() {
    const bool is_short = kIsWide && num_rows > kGroupRows && num_rows <= kShortRows && row_bytes <= kShortRowBytes;
    const int64_t group_rows = is_short ? 4 : kGroupRows;
    num_groups = (num_rows + group_rows - 1) / group_rows;
    num_columns = is_short ? 6 : tile_columns<V>(static_cast<int>((num_rows + num_groups - 1) / num_groups));
    const int64_t fitting = kBlockBytes / (row_bytes * num_columns);
    block_columns = num_groups < kBlockedGroups || fitting < 2 ? num_columns : fitting * num_columns;
  }

  void tile(int64_t group, int64_t first_column, int64_t end_column) const {
    const int64_t begin = num_rows * group / num_groups, end = num_rows * (group + 1) / num_groups;
    const int64_t left = end_column - first_column;
    const int nr = left < num_columns ? static_cast<int>(left) : num_columns;
    const int mr = static_cast<int>(end - begin);
    const W* rows[kMaxTileColumns];
    const W* data = static_cast<const W*>(weights.data) + first_column * weights.num_inputs;
    for (int n = 0; n < nr; ++n) rows[n] = data + n * weights.num_inputs;
    alignas(64) float sums[kMaxTileRows * kMaxTileColumns + 4];
    kTiles.of[mr][nr](rows, ahead(data, group, first_column), x.row(begin), x.stride, weights.num_inputs, sums);
    for (int m = 0; m < mr; ++m) finish(y.row(begin + m) + first_column, sums + m * nr, first_column, nr);
  }

  /// What a group of rows fetches while it uses columns from `data` on.
  Ahead ahead(const W* data, int64_t group, int64_t first_column) const {
    if (num_groups == 1 || (block_columns == num_columns && num_columns * row_bytes > kMaxNextBytes)) {
      const int64_t own = num_rows >= kPrefetchedRows && group == 0 ? kBytesAhead / static_cast<int64_t>(sizeof(W)) : 0;
      return {.own = own, .jump = (num_columns - 1) * weights.num_inputs};
    }
    if (first_column + block_columns >= columns.end) return {};
    // Each group fetches its part of the next block, so that memory has all of the time they take.
    const int64_t from = (num_columns * group + num_groups - 1) / num_groups,
                  to = (num_columns * (group + 1) + num_groups - 1) / num_groups;
    return {.rows = reinterpret_cast<const char*>(data) + (block_columns + from) * row_bytes,
            .stride = row_bytes,
            .count = static_cast<int>(to - from)};
  }

  void finish(float* out, const float* sums, int64_t first_column, int nr) const {
    int n = 0;
    for (; n + 4 <= nr; n += 4) finish_some<4>(out + n, sums + n, first_column + n);
    for (; n < nr; ++n) finish_some<1>(out + n, sums + n, first_column + n);
  }

  template <int N>
  void finish_some(float* out, const float* sums, int64_t first_column) const {
    float values[N];
    for (int n = 0; n < N; ++n) values[n] = sums[n];
    if (weights.bias != nullptr) {
      for (int n = 0; n < N; ++n) values[n] += weights.bias[first_column + n];
    }
    if (into == Into::kAdd) {
      for (int n = 0; n < N; ++n) values[n] += out[n];
    }
    for (int n = 0; n < N; ++n) out[n] = values[n];
  }

  const Weights& weights;
  const ConstRows& x;
  const Rows& y;
  Range columns;
  Into into;
  int64_t num_rows, row_bytes;
  int64_t num_groups = 1, block_columns = 1;
  int num_columns = 1;  ///< of a tile
};

}  // namespace rematch::kernels
