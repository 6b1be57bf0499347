#pragma once
#include <cmath>

#include "model/kernels/attention.h"
#include "model/kernels/rows_kernel.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// Adjacent keys: value d of key l is at data[d · block_len + l].
template <class W>
struct KeyLanes {
  const W* data;
  int64_t first;  ///< of the span's keys
  int count;      ///< at most a register
};

/// Scores of QR queries with KG registers of keys. Each score is a sum over d in ascending order,
/// in its own lane.
/// @param next    KG registers of keys to prefetch
/// @param scores  [QR, kAttentionSpan]
template <class V, class W, int QR, int KG>
void score_lanes(const KeyLanes<W>* keys, const KeyLanes<W>* next, int64_t block_len,
                 const float* queries, int64_t head_dim, float* scores) {
  using F = typename V::F;
  F sums[QR][KG];
#pragma GCC unroll 8
  for (int q = 0; q < QR; ++q) {
#pragma GCC unroll 4
    for (int g = 0; g < KG; ++g) sums[q][g] = V::zero();
  }
  bool is_whole = true;
  for (int g = 0; g < KG; ++g) is_whole = is_whole && keys[g].count == V::kLanes;
  const auto step = [&](int64_t d, const auto& load) {
    F values[KG];
#pragma GCC unroll 4
    for (int g = 0; g < KG; ++g) {
      values[g] = load(keys[g].data + d * block_len, keys[g].count);
      __builtin_prefetch(next[g].data + d * block_len);
    }
#pragma GCC unroll 8
    for (int q = 0; q < QR; ++q) {
      const F query = V::set1(queries[q * head_dim + d]);
#pragma GCC unroll 4
      for (int g = 0; g < KG; ++g) sums[q][g] = V::fma(query, values[g], sums[q][g]);
    }
  };
  if (is_whole) {
    for (int64_t d = 0; d < head_dim; ++d) step(d, [](const W* at, int) { return V::load(at); });
  } else {
    for (int64_t d = 0; d < head_dim; ++d)
      step(d, [](const W* at, int count) { return V::load(at, count); });
  }
#pragma GCC unroll 8
  for (int q = 0; q < QR; ++q) {
#pragma GCC unroll 4
    for (int g = 0; g < KG; ++g)
      V::store(scores + q * kAttentionSpan + keys[g].first, sums[q][g], keys[g].count);
  }
}

/// QR weighted sums of `num_keys` rows of values, ND registers of each: out[q] = Σ_j
/// p[q][j]·rows[j]. Even and odd j have separate sums, because each addition waits for the previous
/// one; both are added at the end.
/// @param last  values in the last register
template <class V, class W, int QR, int ND>
void weighted_rows(const W* const* rows, int64_t offset, int last, int64_t num_keys, const float* p,
                   float* out, int64_t out_stride) {
  using F = typename V::F;
  constexpr int L = V::kLanes;
  constexpr int64_t kAhead = 8;  // prefetch distance in keys
  F sums[2][QR][ND];
#pragma GCC unroll 2
  for (int part = 0; part < 2; ++part) {
#pragma GCC unroll 4
    for (int q = 0; q < QR; ++q) {
#pragma GCC unroll 4
      for (int d = 0; d < ND; ++d) sums[part][q][d] = V::zero();
    }
  }
  const auto step = [&](auto& sum, int64_t j, const auto& load_last) {
    F values[ND];
    const W* const ahead = rows[j + kAhead] + offset;
#pragma GCC unroll 4
    for (int d = 0; d < ND; ++d) {
      values[d] =
          d + 1 < ND ? V::load(rows[j] + offset + d * L) : load_last(rows[j] + offset + d * L);
      __builtin_prefetch(ahead + d * L);
    }
#pragma GCC unroll 4
    for (int q = 0; q < QR; ++q) {
      const F weight = V::set1(p[q * kAttentionSpan + j]);
#pragma GCC unroll 4
      for (int d = 0; d < ND; ++d) sum[q][d] = V::fma(weight, values[d], sum[q][d]);
    }
  };
  const auto all = [&](const auto& load_last) {
    int64_t j = 0;
    for (; j + 2 <= num_keys; j += 2) {
      step(sums[0], j, load_last);
      step(sums[1], j + 1, load_last);
    }
    if (j < num_keys) step(sums[0], j, load_last);
  };
  if (last == L) {
    all([](const W* at) { return V::load(at); });
  } else {
    all([last](const W* at) { return V::load(at, last); });
  }
#pragma GCC unroll 4
  for (int q = 0; q < QR; ++q) {
#pragma GCC unroll 4
    for (int d = 0; d < ND; ++d)
      V::store(out + q * out_stride + d * L, V::add(sums[0][q][d], sums[1][q][d]),
               d + 1 < ND ? L : last);
  }
}

template <class V, class W>
struct AttentionKernel {
  using F = typename V::F;
  static constexpr int L = V::kLanes;
  static constexpr bool kIsWide = V::kRegisters >= 32;
  // queries per call of score_lanes, with kScoredLanes registers of keys
  static constexpr int kScoredQueries = kIsWide ? 6 : 4;
  static constexpr int kScoredLanes = kIsWide ? 4 : 2;
  // queries per call of weighted_rows, with kValueRegisters of each value
  static constexpr int kSummedQueries = kIsWide ? 3 : 2;
  static constexpr int kValueRegisters = kIsWide ? 4 : 2;

  const CacheLayer& cache;
  const AttentionTask& task;
  const AttentionScratch& scratch;

  int64_t num_queries() const { return task.queries.size(); }
  int64_t position(int64_t query) const {
    return task.last_position >= 0
               ? task.last_position
               : task.first_position + (task.queries.begin + query) / task.group;
  }
  int64_t head_offset(int64_t query) const {
    return (task.kv_head * task.group + (task.queries.begin + query) % task.group) * cache.head_dim;
  }
  int64_t row(int64_t query) const { return (task.queries.begin + query) / task.group; }
  // Scratch: scaled queries [Q, D], scores [Q, span], one span's sums [Q, D + 2], all spans' [Q, D
  // + 2].
  float* queries() const { return scratch.values; }
  float* scores() const { return queries() + kAttentionQueries * cache.head_dim; }
  float* partial() const { return scores() + kAttentionQueries * kAttentionSpan; }
  float* totals() const { return partial() + attention_partial_floats(cache.head_dim); }
  int64_t partial_stride() const { return cache.head_dim + 2; }

  static void attend(const CacheLayer& cache, const AttentionTask& task,
                     const AttentionScratch& scratch) {
    const AttentionKernel kernel{cache, task, scratch};
    kernel.load_queries();
    const int64_t num_spans = kernel.position(kernel.num_queries() - 1) / kAttentionSpan + 1;
    for (int64_t span = 0; span < num_spans; ++span) {
      kernel.span(span, kernel.partial());
      kernel.add_span(span, kernel.partial());
    }
    kernel.write_output();
  }

  static void attend_span(const CacheLayer& cache, const AttentionTask& task, int64_t span,
                          const AttentionScratch& scratch, float* partial) {
    const AttentionKernel kernel{cache, task, scratch};
    kernel.load_queries();
    kernel.span(span, partial);
  }

  static void combine_spans(const CacheLayer& cache, const AttentionTask& task, int64_t num_spans,
                            const float* partials, const AttentionScratch& scratch) {
    const AttentionKernel kernel{cache, task, scratch};
    for (int64_t span = 0; span < num_spans; ++span)
      kernel.add_span(span, partials + span * attention_partial_floats(cache.head_dim));
    kernel.write_output();
  }

  void load_queries() const {
    const float scale = 1.0f / std::sqrt(static_cast<float>(cache.head_dim));
    for (int64_t query = 0; query < num_queries(); ++query) {
      const float* from = task.q.row(row(query)) + head_offset(query);
      float* to = queries() + query * cache.head_dim;
      for (int64_t d = 0; d < cache.head_dim; ++d) to[d] = from[d] * scale;
    }
  }

  /// Number of keys of a span that a query attends to; none if ≤ 0.
  int64_t visible(int64_t query, int64_t span) const {
    const int64_t keys = position(query) + 1 - span * kAttentionSpan;
    return keys < kAttentionSpan ? keys : kAttentionSpan;
  }

  void span(int64_t span, float* partial) const {
    const int64_t num_keys = visible(num_queries() - 1, span);
    const W** values = reinterpret_cast<const W**>(scratch.rows);
    KeyLanes<W> keys[kAttentionSpan + kScoredLanes];
    const int64_t num_lanes = locate(span, num_keys, keys, values);
    score(num_lanes, keys);
    for (int64_t query = 0; query < num_queries(); ++query) {
      softmax(scores() + query * kAttentionSpan, visible(query, span), num_keys,
              partial + query * partial_stride());
    }
    sum_values(num_keys, values, partial);
  }

  /// Finds the keys of a span, as registers of adjacent keys, and its values. Returns the number of
  /// registers.
  int64_t locate(int64_t span, int64_t num_keys, KeyLanes<W>* keys, const W** values) const {
    int64_t block = span * kAttentionSpan / cache.block_len,
            slot = span * kAttentionSpan % cache.block_len, num_lanes = 0;
    for (int64_t j = 0; j < num_keys;) {
      const int64_t offset = cache.head_offset(task.block_table[block], task.kv_head);
      const int64_t left = cache.block_len - slot,
                    count = left < num_keys - j ? left : num_keys - j;
      for (int64_t i = 0; i < count; ++i)
        values[j + i] = static_cast<const W*>(cache.values) + offset + (slot + i) * cache.head_dim;
      for (int64_t i = 0; i < count; i += L) {
        // Reads past the last key where block and span allow, to fill the register; those scores
        // are not used.
        const int64_t room = kAttentionSpan - j - i, in_block = left - i,
                      most = room < in_block ? room : in_block;
        const int lanes = static_cast<int>(most < L ? most : L);
        keys[num_lanes++] = {static_cast<const W*>(cache.keys) + offset + slot + i, j + i, lanes};
      }
      j += count;
      slot = 0;
      ++block;
    }
    for (int64_t i = 0; i < kScoredLanes; ++i) keys[num_lanes + i] = keys[num_lanes - 1];
    for (int64_t i = 0; i < 8; ++i) values[num_keys + i] = values[num_keys - 1];
    return num_lanes;
  }

  void score(int64_t num_lanes, const KeyLanes<W>* keys) const {
    for (int64_t i = 0; i < num_lanes;) {
      const int64_t left = num_lanes - i;
      const int count = left < kScoredLanes ? static_cast<int>(left) : kScoredLanes;
      for (int64_t query = 0; query < num_queries();) {
        const int64_t more = num_queries() - query;
        const int together = more < kScoredQueries ? static_cast<int>(more) : kScoredQueries;
        score_some<kScoredQueries, kScoredLanes>(together, count, keys + i, query);
        query += together;
      }
      i += count;
    }
  }

  template <int QR, int KG>
  void score_some(int num_queries, int num_lanes, const KeyLanes<W>* keys, int64_t query) const {
    if constexpr (QR > 1) {
      if (num_queries < QR) return score_some<QR - 1, KG>(num_queries, num_lanes, keys, query);
    }
    if constexpr (KG > 1) {
      if (num_lanes < KG) return score_some<QR, KG - 1>(num_queries, num_lanes, keys, query);
    }
    score_lanes<V, W, QR, KG>(keys, keys + KG, cache.block_len, queries() + query * cache.head_dim,
                              cache.head_dim, scores() + query * kAttentionSpan);
  }

  /// Replaces scores by e^(score − largest), and by 0 for keys that are not attended to.
  void softmax(float* p, int64_t num_visible, int64_t num_keys, float* partial) const {
    if (num_visible < 0) num_visible = 0;
    const int64_t padded = (num_keys + L - 1) / L * L;
    for (int64_t j = num_visible; j < padded; ++j) p[j] = -HUGE_VALF;
    F top = V::set1(-HUGE_VALF);
    for (int64_t j = 0; j < padded; j += L) top = V::max(top, V::load(p + j));
    const float largest = V::max_lane(top);
    const F shift = V::set1(num_visible == 0 ? 0.0f : largest);
    F sum = V::zero();
    for (int64_t j = 0; j < padded; j += L) {
      const F weight = vec_exp<V>(V::sub(V::load(p + j), shift));
      V::store(p + j, weight);
      sum = V::add(sum, weight);
    }
    partial[cache.head_dim] = largest;
    partial[cache.head_dim + 1] = V::sum(sum);
  }

  void sum_values(int64_t num_keys, const W* const* values, float* partial) const {
    for (int64_t query = 0; query < num_queries();) {
      const int64_t left = num_queries() - query;
      const int count = left < kSummedQueries ? static_cast<int>(left) : kSummedQueries;
      for (int64_t d = 0; d < cache.head_dim; d += kValueRegisters * L) {
        const int64_t width =
            cache.head_dim - d < kValueRegisters * L ? cache.head_dim - d : kValueRegisters * L;
        const int registers = static_cast<int>((width + L - 1) / L);
        const int last = static_cast<int>(width - (registers - 1) * L);
        sum_some_values<kSummedQueries>(count, registers, values, d, last, num_keys,
                                        scores() + query * kAttentionSpan,
                                        partial + query * partial_stride() + d);
      }
      query += count;
    }
  }

  template <int QR>
  void sum_some_values(int count, int registers, const W* const* values, int64_t offset, int last,
                       int64_t num_keys, const float* p, float* out) const {
    if constexpr (QR > 1) {
      if (count < QR)
        return sum_some_values<QR - 1>(count, registers, values, offset, last, num_keys, p, out);
    }
    const int64_t stride = partial_stride();
    if (registers == 1)
      return weighted_rows<V, W, QR, 1>(values, offset, last, num_keys, p, out, stride);
    if (registers == 2)
      return weighted_rows<V, W, QR, 2>(values, offset, last, num_keys, p, out, stride);
    if constexpr (kValueRegisters > 2) {
      if (registers == 3)
        return weighted_rows<V, W, QR, 3>(values, offset, last, num_keys, p, out, stride);
      return weighted_rows<V, W, QR, 4>(values, offset, last, num_keys, p, out, stride);
    }
  }

  /// Adds a span to the result of the previous spans.
  void add_span(int64_t span, const float* partials) const {
    const int64_t width = cache.head_dim;
    for (int64_t query = 0; query < num_queries(); ++query) {
      if (visible(query, span) <= 0) continue;
      const float* more = partials + query * partial_stride();
      float* sum = totals() + query * partial_stride();
      if (span == 0) {
        for (int64_t d = 0; d < width + 2; ++d) sum[d] = more[d];
        continue;
      }
      const float largest = sum[width] > more[width] ? sum[width] : more[width];
      const F scale = vec_exp<V>(V::set1(sum[width] - largest)),
              more_scale = vec_exp<V>(V::set1(more[width] - largest));
      sum[width] = 0;  // the loop below includes it and the sum of exponentials after it
      RowKernels<V>::for_row(width + 2, [&](const auto& load, const auto& store) {
        store(sum, V::fma(load(sum), scale, V::mul(load(more), more_scale)));
      });
      sum[width] = largest;
    }
  }

  void write_output() const {
    for (int64_t query = 0; query < num_queries(); ++query) {
      const float* sum = totals() + query * partial_stride();
      float* out = task.out.row(row(query)) + head_offset(query);
      const F total = V::set1(sum[cache.head_dim + 1]);
      RowKernels<V>::for_row(cache.head_dim, [&](const auto& load, const auto& store) {
        store(out, V::div(load(sum), total));
      });
    }
  }
};

}  // namespace rematch::kernels
