#pragma once
#include <algorithm>
#include <utility>

#include "model/kernels/gemm.h"
#include "model/kernels/panel_tile.h"
#include "model/kernels/types.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// Products per partial sum; partial sums are added in order. Fewer would cost time, more would
/// cost precision.
inline constexpr int64_t kChain = 512;
/// Several tiles that use the same weights process K in strips: the first tile reads a strip from
/// memory, the others from the L1 cache, of which a tile's columns fill at most half. Each tile
/// prefetches up to kFetchedBytesOfTile of the next strip, so few tiles need short strips.
inline constexpr int64_t kMaxStripBytes = 16384, kFetchedBytesOfTile = 4096;
/// A single tile prefetches its weights this far ahead if x has at least kRowsToFetchFor rows. With
/// fewer rows the hardware prefetcher is faster.
inline constexpr int64_t kBytesAhead = 8192, kRowsToFetchFor = 6;
/// Steps along K that are interleaved at a time, so that all rows stay in the L1 cache.
inline constexpr int64_t kInterleaved = 128;
/// Groups of rows per block; the sums of a block are kept together.
inline constexpr int64_t kBlockGroups = 18;

/// Loops, from outer to inner: blocks of groups, panels, strips of K, tiles. Tiles prefetch equal
/// shares of the next weights, which keeps memory busy while they multiply.
template <class V, class W>
struct GemmKernel {
  static constexpr PanelTiles<V, W> kTiles{};
  static constexpr int L = V::kLanes;
  static constexpr int kMaxRows = tile_rows<V>(2), kFewRows = tile_rows<V>(4);

  /// The rows of x that one tile processes; group sizes are as even as possible.
  struct Group {
    int64_t first_row, num_rows;
  };
  /// @param num_rows  all rows of x, here and below
  static int64_t num_groups(int64_t num_rows) { return (num_rows + kMaxRows - 1) / kMaxRows; }
  static Group group_at(int64_t index, int64_t num_rows, int64_t num_groups) {
    const int64_t begin = num_rows * index / num_groups;
    return {begin, num_rows * (index + 1) / num_groups - begin};
  }

  static void interleave(const ConstRows& x, Range rows, Range columns,
                         const InterleavedRows& out) {
    const int64_t count = num_groups(out.num_rows);
    for (int64_t i = 0; i < count; ++i) {
      const Group group = group_at(i, out.num_rows, count);
      const int64_t begin = std::max(rows.begin, group.first_row),
                    end = std::min(rows.end, group.first_row + group.num_rows);
      for (int64_t k = columns.begin; k < columns.end; k += kInterleaved) {
        const int64_t num_steps = std::min(kInterleaved, columns.end - k);
        float* const to =
            out.data + group.first_row * out.num_inputs + k * group.num_rows - group.first_row;
        for (int64_t m = begin; m < end; ++m) {
          const float* const row = x.row(m) + k;
          for (int64_t j = 0; j < num_steps; ++j) to[j * group.num_rows + m] = row[j];
        }
      }
    }
  }

  static void run(const PackedWeights& weights, const InterleavedRows& x, const Rows& y,
                  Range columns, Into into) {
    const int64_t count = num_groups(x.num_rows);
    for (int64_t i = 0; i < count; i += kBlockGroups) {
      GemmKernel kernel{weights, x, y, columns, into, std::min(kBlockGroups, count - i)};
      for (int64_t j = 0; j < kernel.num_block_groups; ++j)
        kernel.groups[j] = group_at(i + j, x.num_rows, count);
      const Group& last = kernel.groups[kernel.num_block_groups - 1];
      kernel.first_row = kernel.groups[0].first_row;
      kernel.num_rows = last.first_row + last.num_rows - kernel.first_row;
      kernel.run_block();
    }
  }

  void run_block() const {
    const int64_t widest = num_rows > kFewRows ? 2 : 4;
    for (int64_t n = columns.begin; n < columns.end;) {
      const int64_t left = (columns.end - n + L - 1) / L;
      const int64_t registers = left < widest ? 2 : widest;
      const int64_t width = std::max<int64_t>(registers * L, kPanel);
      multiply(n, registers, std::min(width, columns.end - n));
      n += width;
    }
  }

  /// Computes `num_columns` outputs from `column` on, the first of a panel.
  void multiply(int64_t column, int64_t registers, int64_t num_columns) const {
    const int64_t tile_width = registers * L,
                  num_parts = (num_columns + tile_width - 1) / tile_width;
    const int64_t num_tiles = num_parts * num_block_groups, num_inputs = weights.num_inputs;
    const int64_t strip = num_tiles == 1 ? kChain : strip_length(num_tiles, tile_width);
    alignas(64) float buffers[2][kBlockGroups * kMaxRows * kPanel];
    static_assert(kFewRows * kMaxTileRegisters * L <= kBlockGroups * kMaxRows * kPanel);
    float *sums = buffers[0], *totals = buffers[1];
    for (int64_t k = 0; k < num_inputs; k += strip) {
      const int64_t count = std::min(strip, num_inputs - k), end = k + count;
      TileInput<W> in = input(column, k, count, num_tiles);
      for (int64_t part = 0; part < num_parts; ++part, in.w += tile_width) {
        for (int64_t i = 0; i < num_block_groups; ++i) {
          const Group& group = groups[i];
          in.x = x.data + group.first_row * num_inputs + k * group.num_rows;
          kTiles.functions[group.num_rows][registers](
              in, sums + (part * num_rows + group.first_row - first_row) * tile_width);
          in.ahead += in.lines_ahead * kLineBytes;
        }
      }
      if (end % kChain != 0 && end != num_inputs) continue;
      if (end <= kChain) {
        std::swap(sums, totals);
      } else {
        const int64_t size = num_parts * num_rows * tile_width;
        for (int64_t i = 0; i < size; i += L)
          V::store(totals + i, V::add(V::load(totals + i), V::load(sums + i)));
      }
    }
    for (int64_t part = 0; part < num_parts; ++part) {
      const int64_t first = part * tile_width, count = std::min(tile_width, num_columns - first);
      for (int64_t m = 0; m < num_rows; ++m) {
        finish(y.row(first_row + m) + column + first, totals + (part * num_rows + m) * tile_width,
               column + first, count);
      }
    }
  }

  /// Steps along K of a strip; divides kChain.
  static int64_t strip_length(int64_t num_tiles, int64_t tile_width) {
    constexpr int64_t kBytes = static_cast<int64_t>(sizeof(W));
    int64_t length = kChain;
    while (length * tile_width * kBytes > kMaxStripBytes ||
           length * kPanel * kBytes > num_tiles * kFetchedBytesOfTile)
      length /= 2;
    return length;
  }

  /// Input of the first tile of a strip.
  TileInput<W> input(int64_t column, int64_t k, int64_t count, int64_t num_tiles) const {
    constexpr int64_t kBytes = static_cast<int64_t>(sizeof(W));
    const int64_t panel_stride = weights.num_inputs * kPanel;
    const W* const strip =
        static_cast<const W*>(weights.data) + column / kPanel * panel_stride + k * kPanel;
    TileInput<W> in{
        .w = strip, .panel_stride = panel_stride, .count = count, .begins = k % kChain == 0};
    if (num_tiles == 1) {
      if (num_rows >= kRowsToFetchFor) in.own_ahead = kBytesAhead / kBytes;
    } else {
      in.ahead = reinterpret_cast<const char*>(strip + count * kPanel);  // the next strip
      in.lines_ahead = (count * kPanel * kBytes / kLineBytes + num_tiles - 1) / num_tiles;
      in.lines_a_step = (kUnrolled * kPanel * kBytes / kLineBytes + num_tiles - 1) / num_tiles;
    }
    return in;
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
  const InterleavedRows& x;
  const Rows& y;
  Range columns;
  Into into;
  int64_t num_block_groups;
  int64_t first_row = 0, num_rows = 0;  // of the block
  Group groups[kBlockGroups] = {};
};

}  // namespace rematch::kernels
