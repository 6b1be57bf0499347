#pragma once
#include <cmath>

#include "kernels/attention.h"
#include "kernels/dot_tile.h"
#include "kernels/rows_kernel.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// QR weighted sums of `num_keys` rows of values, ND registers of each: out[q] = Σ_j p[q][j]·rows[j], j ascending.
/// @param last  values in the last register
template <class V, class W, int QR, int ND>
void weighted_rows(const W* const* rows, int64_t offset, int last, int64_t num_keys, const float* p, float* out, int64_t out_stride) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  F sums[QR][ND];
#pragma GCC unroll 4
  for (int q = 0; q < QR; ++q) {
#pragma GCC unroll 4
    for (int d = 0; d < ND; ++d) sums[q][d] = V::zero();
  }
  const auto step = [&](int64_t j, const auto& load_last) {
    F values[ND];
#pragma GCC unroll 4
    for (int d = 0; d + 1 < ND; ++d) values[d] = V::load(rows[j] + offset + d * L);
    values[ND - 1] = load_last(rows[j] + offset + (ND - 1) * L);
#pragma GCC unroll 4
    for (int q = 0; q < QR; ++q) {
      const F weight = V::set1(p[q * kAttentionSpan + j]);
#pragma GCC unroll 4
      for (int d = 0; d < ND; ++d) sums[q][d] = V::fma(weight, values[d], sums[q][d]);
    }
  };
  if (last == L) {
    for (int64_t j = 0; j < num_keys; ++j) step(j, [](const W* at) { return V::load(at); });
  } else {
    for (int64_t j = 0; j < num_keys; ++j) step(j, [last](const W* at) { return V::load(at, last); });
  }
#pragma GCC unroll 4
  for (int q = 0; q < QR; ++q) {
#pragma GCC unroll 4
    for (int d = 0; d + 1 < ND; ++d) V::store(out + q * out_stride + d * L, sums[q][d]);
    V::store(out + q * out_stride + (ND - 1) * L, sums[q][ND - 1], last);
  }
}

template <class V, class W>
struct AttentionKernel {
  using F = typename V::F;
  static constexpr int L = V::kLanes;
  static constexpr int kGroupRows = V::kRegisters >= 32 ? 6 : 4;
  static constexpr int kColumns = 4;
  static constexpr int kValueRegisters = V::kRegisters >= 32 ? 4 : 2;
  static constexpr DotTiles<V, W> kTiles{};
  static_assert(tile_fits<V>(1, kColumns));

  const CacheLayer& cache;
  const AttentionTask& task;
  const AttentionScratch& scratch;

  int64_t num_queries() const { return task.queries.size(); }
  int64_t position(int64_t query) const { return task.first_position + (task.queries.begin + query) / task.group; }
  int64_t head_offset(int64_t query) const {
    return (task.kv_head * task.group + (task.queries.begin + query) % task.group) * cache.head_dim;
  }
  int64_t row(int64_t query) const { return (task.queries.begin + query) / task.group; }
  // Scratch: scaled queries [Q, D], scores [Q, span], one span's sums [Q, D + 2], all spans' [Q, D + 2].
  float* queries() const { return scratch.values; }
  float* scores() const { return queries() + kAttentionQueries * cache.head_dim; }
  float* partial() const { return scores() + kAttentionQueries * kAttentionSpan; }
  float* state() const { return partial() + attention_partial_floats(cache.head_dim); }
  int64_t partial_stride() const { return cache.head_dim + 2; }

  static void attend(const CacheLayer& cache, const AttentionTask& task, const AttentionScratch& scratch) {
    const AttentionKernel kernel{cache, task, scratch};
    kernel.load_queries();
    const int64_t num_spans = kernel.position(kernel.num_queries() - 1) / kAttentionSpan + 1;
    for (int64_t span = 0; span < num_spans; ++span) {
      kernel.span(span, kernel.partial());
      kernel.take(span, kernel.partial());
    }
    kernel.write();
  }

  static void attend_span(const CacheLayer& cache, const AttentionTask& task, int64_t span, const AttentionScratch& scratch,
                          float* partial) {
    const AttentionKernel kernel{cache, task, scratch};
    kernel.load_queries();
    kernel.span(span, partial);
  }

  static void combine_spans(const CacheLayer& cache, const AttentionTask& task, int64_t num_spans, const float* partials,
                            const AttentionScratch& scratch) {
    const AttentionKernel kernel{cache, task, scratch};
    for (int64_t span = 0; span < num_spans; ++span) kernel.take(span, partials + span * attention_partial_floats(cache.head_dim));
    kernel.write();
  }

  void load_queries() const {
    const float scale = 1.0f / std::sqrt(static_cast<float>(cache.head_dim));
    for (int64_t query = 0; query < num_queries(); ++query) {
      const float* from = task.q.row(row(query)) + head_offset(query);
      float* to = queries() + query * cache.head_dim;
      for (int64_t d = 0; d < cache.head_dim; ++d) to[d] = from[d] * scale;
    }
  }

  /// Keys of a span that a query sees; none of them at or below 0.
  int64_t visible(int64_t query, int64_t span) const {
    const int64_t keys = position(query) + 1 - span * kAttentionSpan;
    return keys < kAttentionSpan ? keys : kAttentionSpan;
  }

  void span(int64_t span, float* partial) const {
    const int64_t num_keys = visible(num_queries() - 1, span);
    const W** keys = reinterpret_cast<const W**>(scratch.rows);
    const W** values = keys + kAttentionSpan;
    locate(span, num_keys, keys, values);
    score(num_keys, keys);
    for (int64_t query = 0; query < num_queries(); ++query) {
      softmax(scores() + query * kAttentionSpan, visible(query, span), num_keys, partial + query * partial_stride());
    }
    weigh(num_keys, values, partial);
  }

  void locate(int64_t span, int64_t num_keys, const W** keys, const W** values) const {
    int64_t block = span * kAttentionSpan / cache.block_len, slot = span * kAttentionSpan % cache.block_len;
    for (int64_t j = 0; j < num_keys;) {
      const int64_t offset = cache.offset(task.block_table[block], task.kv_head, slot);
      const int64_t left = cache.block_len - slot, count = left < num_keys - j ? left : num_keys - j;
      for (int64_t i = 0; i < count; ++i) {
        keys[j + i] = static_cast<const W*>(cache.keys) + offset + i * cache.head_dim;
        values[j + i] = static_cast<const W*>(cache.values) + offset + i * cache.head_dim;
      }
      j += count;
      slot = 0;
      ++block;
    }
  }

  void score(int64_t num_keys, const W* const* keys) const {
    const int64_t num_groups = (num_queries() + kGroupRows - 1) / kGroupRows;
    const int64_t largest = (num_queries() + num_groups - 1) / num_groups;
    const int columns = tile_columns<V>(static_cast<int>(largest)) < kColumns ? tile_columns<V>(static_cast<int>(largest)) : kColumns;
    alignas(64) float sums[kMaxTileRows * kMaxTileColumns + 4];
    for (int64_t j = 0; j < num_keys; j += columns) {
      const int nr = num_keys - j < columns ? static_cast<int>(num_keys - j) : columns;
      for (int64_t group = 0; group < num_groups; ++group) {
        const int64_t begin = num_queries() * group / num_groups, end = num_queries() * (group + 1) / num_groups;
        kTiles.of[end - begin][nr](keys + j, {}, queries() + begin * cache.head_dim, cache.head_dim, cache.head_dim, sums);
        for (int64_t query = begin; query < end; ++query) {
          for (int n = 0; n < nr; ++n) scores()[query * kAttentionSpan + j + n] = sums[(query - begin) * nr + n];
        }
      }
    }
  }

  /// Turns scores into e^(score − greatest), 0 for keys that are not seen.
  void softmax(float* p, int64_t num_visible, int64_t num_keys, float* partial) const {
    if (num_visible < 0) num_visible = 0;
    const int64_t padded = (num_keys + L - 1) / L * L;
    for (int64_t j = num_visible; j < padded; ++j) p[j] = -HUGE_VALF;
    F top = V::set1(-HUGE_VALF);
    for (int64_t j = 0; j < padded; j += L) top = V::max(top, V::load(p + j));
    const float greatest = V::max_of(top);
    const F shift = V::set1(num_visible == 0 ? 0.0f : greatest);
    F sum = V::zero();
    for (int64_t j = 0; j < padded; j += L) {
      const F weight = exp_of<V>(V::sub(V::load(p + j), shift));
      V::store(p + j, weight);
      sum = V::add(sum, weight);
    }
    partial[cache.head_dim] = greatest;
    partial[cache.head_dim + 1] = V::sum(sum);
  }

  void weigh(int64_t num_keys, const W* const* values, float* partial) const {
    for (int64_t query = 0; query < num_queries();) {
      const int64_t left = num_queries() - query;
      const int count = left < 4 ? static_cast<int>(left) : 4;
      for (int64_t d = 0; d < cache.head_dim; d += kValueRegisters * L) {
        const int64_t width = cache.head_dim - d < kValueRegisters * L ? cache.head_dim - d : kValueRegisters * L;
        const int registers = static_cast<int>((width + L - 1) / L);
        const int last = static_cast<int>(width - (registers - 1) * L);
        weigh_some<4>(count, registers, values, d, last, num_keys, scores() + query * kAttentionSpan,
                      partial + query * partial_stride() + d);
      }
      query += count;
    }
  }

  template <int QR>
  void weigh_some(int count, int registers, const W* const* values, int64_t offset, int last, int64_t num_keys, const float* p,
                  float* out) const {
    if constexpr (QR > 1) {
      if (count < QR) return weigh_some<QR - 1>(count, registers, values, offset, last, num_keys, p, out);
    }
    const int64_t stride = partial_stride();
    if (registers == 1) return weighted_rows<V, W, QR, 1>(values, offset, last, num_keys, p, out, stride);
    if (registers == 2) return weighted_rows<V, W, QR, 2>(values, offset, last, num_keys, p, out, stride);
    if constexpr (kValueRegisters > 2) {
      if (registers == 3) return weighted_rows<V, W, QR, 3>(values, offset, last, num_keys, p, out, stride);
      return weighted_rows<V, W, QR, 4>(values, offset, last, num_keys, p, out, stride);
    }
  }

  /// Adds a span to what the spans before it gave.
  void take(int64_t span, const float* partials) const {
    const int64_t width = cache.head_dim;
    for (int64_t query = 0; query < num_queries(); ++query) {
      if (visible(query, span) <= 0) continue;
      const float* more = partials + query * partial_stride();
      float* sum = state() + query * partial_stride();
      if (span == 0) {
        for (int64_t d = 0; d < width + 2; ++d) sum[d] = more[d];
        continue;
      }
      const float greatest = sum[width] > more[width] ? sum[width] : more[width];
      const F scale = exp_of<V>(V::set1(sum[width] - greatest)), more_scale = exp_of<V>(V::set1(more[width] - greatest));
      sum[width] = 0;  // takes part in the loop below, like the sum of exponentials behind it
      RowKernels<V>::for_row(width + 2, [&](const auto& load, const auto& store) {
        store(sum, V::fma(load(sum), scale, V::mul(load(more), more_scale)));
      });
      sum[width] = greatest;
    }
  }

  void write() const {
    for (int64_t query = 0; query < num_queries(); ++query) {
      const float* sum = state() + query * partial_stride();
      float* out = task.out.row(row(query)) + head_offset(query);
      const F total = V::set1(sum[cache.head_dim + 1]);
      RowKernels<V>::for_row(cache.head_dim, [&](const auto& load, const auto& store) {
        store(out, V::div(load(sum), total));
      });
    }
  }
};

}  // namespace rematch::kernels
