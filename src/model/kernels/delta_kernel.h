#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/kernels/delta.h"
#include "model/kernels/gemm_kernel.h"
#include "model/kernels/rows_kernel.h"

// Templates over a Vec (vec_*.h); included by the kernels_*.cc only.

namespace rematch::kernels {

/// Parts of the state of a key head.
struct DeltaState {
  float* keys;      ///< [dk, kDeltaRing]
  float* window;    ///< [kDeltaWindow, channels]
  float* matrices;  ///< [G, panels of dv, dk, kPanel]
  float* vectors;   ///< [G, kDeltaRing, padded dv]
  float* decays;    ///< [G, kDeltaRing]: sums of g from the start of a chunk

  DeltaState(const DeltaShape& shape, float* state)
      : keys(state),
        window(keys + shape.key_dim * kDeltaRing),
        matrices(window + kDeltaWindow * shape.channels()),
        vectors(matrices + shape.group * shape.matrix_floats()),
        decays(vectors + shape.group * kDeltaRing * shape.padded_value_dim()) {}
};

/// Parts of a worker's scratch memory; rows of one chunk.
struct DeltaScratch {
  float* mixed;        ///< [rows, channels]: after the convolution
  float* rows;         ///< [2·rows, dk]: keys, then queries
  float* interleaved;  ///< the same for products
  float* scores;       ///< [2·rows, kPanel]: products with the kept keys
  float* products;     ///< [2·rows, padded dv]: products with a matrix
  float* matrices;     ///< [G, …] with a chunk of drafts added
  float* weighted;     ///< [dk, kDeltaChunk]: keys that are added to a matrix
  float* value;        ///< [padded dv]

  DeltaScratch(const DeltaShape& shape, float* scratch)
      : mixed(scratch),
        rows(mixed + kDeltaChunk * shape.channels()),
        interleaved(rows + 2 * kDeltaChunk * shape.key_dim),
        scores(interleaved + 2 * kDeltaChunk * shape.key_dim),
        products(scores + 2 * kDeltaChunk * kPanel),
        matrices(products + 2 * kDeltaChunk * shape.padded_value_dim()),
        weighted(matrices + shape.group * shape.matrix_floats()),
        value(weighted + shape.key_dim * kDeltaChunk) {}
};

template <class V>
struct DeltaKernel {
  using F = typename V::F;
  using Row = RowKernels<V>;
  static constexpr int L = V::kLanes;
  static constexpr int kRegistersOfPanel = static_cast<int>(kPanel) / L;
  static constexpr int kRegistersOfChunk = static_cast<int>(kDeltaChunk) / L;
  /// rows of a matrix that are updated together
  static constexpr int kFoldedRows = V::kRegisters / 2 / kRegistersOfPanel;
  static_assert(kDeltaChunk % L == 0 && kFoldedRows >= 1);

  const DeltaShape& shape;
  const DeltaTask& task;
  DeltaState state;
  DeltaScratch scratch;

  /// Rows of a task that lie in one chunk.
  struct Run {
    int64_t first_row, num_rows;
    int64_t position;  ///< of the first row
    int64_t chunk() const { return position / kDeltaChunk * kDeltaChunk; }
    int64_t chunk_slot() const { return chunk() % kDeltaRing; }
  };

  static void run(const DeltaShape& shape, const DeltaTask& task, float* scratch) {
    DeltaKernel kernel{shape, task, {shape, task.state}, {shape, scratch}};
    kernel.run_rows();
  }

  void run_rows() const {
    float* matrices = state.matrices;
    if (task.first_position == 0) std::fill_n(matrices, shape.group * shape.matrix_floats(), 0.0f);
    int64_t num_folded = task.num_folded;
    for (int64_t row = 0; row < task.num_rows;) {
      Run run{row, 0, task.first_position + row};
      run.num_rows = std::min(task.num_rows - row, run.chunk() + kDeltaChunk - run.position);
      if (run.chunk() > num_folded) {
        // A draft must not change the matrices of the sequence.
        float* const to = row < task.num_known ? state.matrices : scratch.matrices;
        for (int64_t head = 0; head < shape.group; ++head) fold(head, num_folded, matrices, to);
        matrices = to;
        num_folded = run.chunk();
      }
      run_chunk(run, matrices);
      row += run.num_rows;
    }
    keep_window();
  }

  void run_chunk(const Run& run, const float* matrices) const {
    for (int64_t i = 0; i < run.num_rows; ++i) {
      convolve(run.first_row + i, scratch.mixed + i * shape.channels());
      keep_key(run, i);
    }
    const InterleavedRows x{scratch.interleaved, 2 * run.num_rows, shape.key_dim};
    GemmKernel<V, float>::interleave({scratch.rows, shape.key_dim}, {0, x.num_rows},
                                     {0, shape.key_dim}, x);
    multiply(state.keys, kPanel, x, scratch.scores);
    for (int64_t head = 0; head < shape.group; ++head) {
      multiply(matrices + head * shape.matrix_floats(), shape.padded_value_dim(), x,
               scratch.products);
      for (int64_t i = 0; i < run.num_rows; ++i) run_row(run, i, head);
    }
  }

  void multiply(const float* packed, int64_t num_outputs, const InterleavedRows& x,
                float* y) const {
    GemmKernel<V, float>::run(
        {.data = packed, .num_outputs = num_outputs, .num_inputs = shape.key_dim}, x,
        {y, num_outputs}, {0, num_outputs}, Into::kStore);
  }

  /// The convolution's inputs at a position: a row of the task, a kept one, or null before the
  /// start.
  const float* inputs_at(int64_t position, int64_t column, int64_t kept_column) const {
    if (position < 0) return nullptr;
    if (position >= task.first_position)
      return task.inputs.row(position - task.first_position) + column;
    return state.window + position % kDeltaWindow * shape.channels() + kept_column;
  }

  /// Calls body(column of the inputs, column of the head, width) for query, key and values.
  template <class Body>
  void for_parts(const Body& body) const {
    body(task.query_column, int64_t{0}, shape.key_dim);
    body(task.key_column, shape.key_dim, shape.key_dim);
    body(task.value_column, 2 * shape.key_dim, shape.group * shape.value_dim);
  }

  /// y = silu(Σ taps·inputs) of a row, oldest token first.
  void convolve(int64_t row, float* y) const {
    const F one = V::set1(1.0f);
    const int64_t position = task.first_position + row;
    for_parts([&](int64_t column, int64_t own_column, int64_t width) {
      const float* x[kDeltaTaps];
      for (int64_t j = 0; j < kDeltaTaps; ++j)
        x[j] = inputs_at(position - (kDeltaTaps - 1) + j, column, own_column);
      float* const to = y + own_column;
      Row::for_row(width, [&](const auto& load, const auto& store) {
        F sum = V::zero();
        for (int64_t j = 0; j < kDeltaTaps; ++j) {
          if (x[j] != nullptr) sum = V::fma(load(task.taps.row(j) + column), load(x[j]), sum);
        }
        store(to, V::div(sum, V::add(one, vec_exp<V>(V::sub(V::zero(), sum)))));
      });
    });
  }

  /// Keeps the last inputs of the convolution.
  void keep_window() const {
    for (int64_t row = std::max<int64_t>(0, task.num_rows - kDeltaWindow); row < task.num_rows;
         ++row) {
      float* const to =
          state.window + (task.first_position + row) % kDeltaWindow * shape.channels();
      for_parts([&](int64_t column, int64_t own_column, int64_t width) {
        std::copy_n(task.inputs.row(row) + column, width, to + own_column);
      });
    }
  }

  /// y = x / √(Σx² + 1e-6) · scale
  void normalise(const float* x, float scale, float* y) const {
    const float squares =
        Row::sum_terms(x, shape.key_dim, [](F value, int) { return V::mul(value, value); });
    const F by = V::set1(scale / std::sqrt(squares + 1e-6f));
    Row::for_row(shape.key_dim,
                 [&](const auto& load, const auto& store) { store(y, V::mul(load(x), by)); });
  }

  /// Normalises key and query of row i of a run, and keeps the key.
  void keep_key(const Run& run, int64_t i) const {
    const float* const query = scratch.mixed + i * shape.channels();
    float* const key = scratch.rows + i * shape.key_dim;
    normalise(query + shape.key_dim, 1.0f, key);
    normalise(query, 1.0f / std::sqrt(static_cast<float>(shape.key_dim)),
              scratch.rows + (run.num_rows + i) * shape.key_dim);
    float* const to = state.keys + (run.position + i) % kDeltaRing;
    for (int64_t d = 0; d < shape.key_dim; ++d) to[d * kDeltaRing] = key[d];
  }

  /// The vector and the output of row i of a run in a value head.
  void run_row(const Run& run, int64_t i, int64_t head) const {
    const int64_t width = shape.padded_value_dim(), slot = (run.position + i) % kDeltaRing;
    const int64_t num_before = slot - run.chunk_slot();  // tokens of the chunk before this one
    const int64_t row = run.first_row + i;
    float* const decays = state.decays + head * kDeltaRing;
    const float decay = task.decay.row(row)[head] + (num_before == 0 ? 0.0f : decays[slot - 1]);
    decays[slot] = decay;
    // e^(G_t − G_j) times the products with the keys of the chunk
    alignas(64) float of_key[kDeltaChunk], of_query[kDeltaChunk];
    for (int64_t j = 0; j < kDeltaChunk; j += L) {
      const int64_t at = run.chunk_slot() + j;
      const F passed = vec_exp<V>(V::sub(V::set1(decay), V::load(decays + at)));
      V::store(of_key + j, V::mul(passed, V::load(scratch.scores + i * kPanel + at)));
      V::store(of_query + j,
               V::mul(passed, V::load(scratch.scores + (run.num_rows + i) * kPanel + at)));
    }
    const float* const mixed =
        scratch.mixed + i * shape.channels() + 2 * shape.key_dim + head * shape.value_dim;
    std::copy_n(mixed, shape.value_dim, scratch.value);
    std::fill(scratch.value + shape.value_dim, scratch.value + width, 0.0f);
    const F passed = vec_exp<V>(V::set1(decay)), beta = V::set1(task.beta.row(row)[head]);
    const float* const key_product = scratch.products + i * width;
    float* const query_product = scratch.products + (run.num_rows + i) * width;
    float* const vectors = state.vectors + (head * kDeltaRing + run.chunk_slot()) * width;
    for (int64_t d = 0; d < width; d += kPanel) {
      run_panel(num_before, of_key, of_query, passed, beta, vectors + d, key_product + d,
                scratch.value + d, query_product + d);
    }
    std::copy_n(query_product, shape.value_dim, task.out.row(row) + head * shape.value_dim);
  }

  /// kPanel values of run_row(): u = β·(v − (e^G·kᵀS + Σ_j of_key·u_j)), out = e^G·qᵀS + Σ_j
  /// of_query·u_j, j up to this token.
  /// @param vectors  u of the chunk
  /// @param out  in: qᵀS
  void run_panel(int64_t num_before, const float* of_key, const float* of_query, F passed, F beta,
                 float* vectors, const float* key_product, const float* value, float* out) const {
    const int64_t stride = shape.padded_value_dim();
    F known[kRegistersOfPanel], sum[kRegistersOfPanel];
#pragma GCC unroll 8
    for (int r = 0; r < kRegistersOfPanel; ++r) {
      known[r] = V::mul(passed, V::load(key_product + r * L));
      sum[r] = V::mul(passed, V::load(out + r * L));
    }
    for (int64_t j = 0; j < num_before; ++j) {
      const F by_key = V::set1(of_key[j]), by_query = V::set1(of_query[j]);
#pragma GCC unroll 8
      for (int r = 0; r < kRegistersOfPanel; ++r) {
        const F u = V::load(vectors + j * stride + r * L);
        known[r] = V::fma(by_key, u, known[r]);
        sum[r] = V::fma(by_query, u, sum[r]);
      }
    }
    const F by_query = V::set1(of_query[num_before]);
#pragma GCC unroll 8
    for (int r = 0; r < kRegistersOfPanel; ++r) {
      const F u = V::mul(beta, V::sub(V::load(value + r * L), known[r]));
      V::store(vectors + num_before * stride + r * L, u);
      V::store(out + r * L, V::fma(by_query, u, sum[r]));
    }
  }

  /// Adds a chunk to a matrix: to = e^G·S + Σ_j e^(G − G_j)·k_j·u_jᵀ, G at the end of the chunk.
  void fold(int64_t head, int64_t chunk, const float* from, float* to) const {
    const int64_t slot = chunk % kDeltaRing, width = shape.padded_value_dim();
    const float* const decays = state.decays + head * kDeltaRing + slot;
    const F last = V::set1(decays[kDeltaChunk - 1]), passed = vec_exp<V>(last);
    F decayed[kRegistersOfChunk];
    for (int j = 0; j < kRegistersOfChunk; ++j)
      decayed[j] = vec_exp<V>(V::sub(last, V::load(decays + j * L)));
    for (int64_t d = 0; d < shape.key_dim; ++d) {
      for (int j = 0; j < kRegistersOfChunk; ++j) {
        V::store(scratch.weighted + d * kDeltaChunk + j * L,
                 V::mul(decayed[j], V::load(state.keys + d * kDeltaRing + slot + j * L)));
      }
    }
    const float* const vectors = state.vectors + (head * kDeltaRing + slot) * width;
    const int64_t offset = head * shape.matrix_floats();
    for (int64_t panel = 0; panel < width / kPanel; ++panel) {
      const int64_t first = offset + panel * shape.key_dim * kPanel;
      int64_t d = 0;
      for (; d + kFoldedRows <= shape.key_dim; d += kFoldedRows)
        fold_rows<kFoldedRows>(d, passed, vectors + panel * kPanel, from + first, to + first);
      for (; d < shape.key_dim; ++d)
        fold_rows<1>(d, passed, vectors + panel * kPanel, from + first, to + first);
    }
  }

  /// Rows d … d + N of one panel of fold().
  template <int N>
  void fold_rows(int64_t d, F passed, const float* vectors, const float* from, float* to) const {
    const int64_t stride = shape.padded_value_dim();
    F sums[N][kRegistersOfPanel];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
      for (int r = 0; r < kRegistersOfPanel; ++r)
        sums[n][r] = V::mul(passed, V::load(from + (d + n) * kPanel + r * L));
    }
    for (int64_t j = 0; j < kDeltaChunk; ++j) {
      F u[kRegistersOfPanel];
#pragma GCC unroll 8
      for (int r = 0; r < kRegistersOfPanel; ++r) u[r] = V::load(vectors + j * stride + r * L);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        const F key = V::set1(scratch.weighted[(d + n) * kDeltaChunk + j]);
#pragma GCC unroll 8
        for (int r = 0; r < kRegistersOfPanel; ++r) sums[n][r] = V::fma(key, u[r], sums[n][r]);
      }
    }
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
      for (int r = 0; r < kRegistersOfPanel; ++r)
        V::store(to + (d + n) * kPanel + r * L, sums[n][r]);
    }
  }
};

}  // namespace rematch::kernels
