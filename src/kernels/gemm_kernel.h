#pragma once
#include "kernels/gemm.h"
#include "kernels/panel_tile.h"
#include "kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// Weights that are used once are fetched this far ahead, for this many rows of x and more. With fewer the processor's own prefetching is
/// the faster one: nothing but weights is read, one line after the other.
inline constexpr int64_t kBytesAhead = 8192, kRowsToFetchFor = 6;

/// Panels, groups of rows: the outer to the inner loop. A panel stays in a cache for all groups, which fetch the next one meanwhile.
template <class V, class W>
struct GemmKernel {
  static constexpr PanelTiles<V, W> kTiles{};
  static constexpr int L = V::kLanes;
  static constexpr int kMostRows = tile_rows<V>(2), kFewRows = tile_rows<V>(4);

  static void run(const PackedWeights& weights, const ConstRows& x, int64_t num_rows, const Rows& y, Range columns, Into into) {
    GemmKernel kernel{weights, x, y, columns, into, num_rows};
    kernel.num_groups = (num_rows + kMostRows - 1) / kMostRows;
    const int64_t widest = num_rows > kFewRows ? 2 : 4;
    for (int64_t n = columns.begin; n < columns.end;) {
      const int64_t left = (columns.end - n + L - 1) / L;
      const int64_t registers = left < widest ? 2 : widest;
      for (int64_t group = 0; group < kernel.num_groups; ++group) kernel.tile(group, n, registers);
      n += registers * L;
    }
  }

  void tile(int64_t group, int64_t column, int64_t registers) const {
    const int64_t begin = num_rows * group / num_groups, end = num_rows * (group + 1) / num_groups;
    const int64_t panel = column / kPanel, panel_stride = weights.num_inputs * kPanel;
    TileInput<W> in{.w = static_cast<const W*>(weights.data) + panel * panel_stride + column % kPanel,
                    .panel_stride = panel_stride,
                    .x = x.row(begin),
                    .x_stride = x.stride,
                    .num_inputs = weights.num_inputs};
    if (num_groups == 1) {
      if (num_rows >= kRowsToFetchFor) in.own_ahead = kBytesAhead / static_cast<int64_t>(sizeof(W));
    } else if (column % kPanel + registers * L >= kPanel && (panel + 1) * kPanel < columns.end) {
      const int64_t bytes = panel_stride * static_cast<int64_t>(sizeof(W));
      in.ahead = static_cast<const char*>(weights.data) + (panel + 1) * bytes + bytes * group / num_groups;
      in.ahead_step = kPanel * static_cast<int64_t>(sizeof(W)) / num_groups;
    }
    alignas(64) float sums[kMaxTileRows * kMaxTileRegisters * L];
    kTiles.of[end - begin][registers](in, sums);
    const int64_t count = columns.end - column < registers * L ? columns.end - column : registers * L;
    for (int64_t m = begin; m < end; ++m) finish(y.row(m) + column, sums + (m - begin) * registers * L, column, count);
  }

  void finish(float* out, const float* sums, int64_t column, int64_t count) const {
    using F = typename V::F;
    for (int64_t i = 0; i < count; i += L) {
      const int lanes = count - i < L ? static_cast<int>(count - i) : L;
      const auto load = [&](const float* p) { return lanes == L ? V::load(p) : V::load(p, lanes); };
      F value = V::load(sums + i);
      if (weights.bias != nullptr) value = V::add(value, load(weights.bias + column + i));
      if (into == Into::kAdd) value = V::add(value, load(out + i));
      if (lanes == L) {
        V::store(out + i, value);
      } else {
        V::store(out + i, value, lanes);
      }
    }
  }

  const PackedWeights& weights;
  const ConstRows& x;
  const Rows& y;
  Range columns;
  Into into;
  int64_t num_rows;
  int64_t num_groups = 1;
};

}  // namespace rematch::kernels
