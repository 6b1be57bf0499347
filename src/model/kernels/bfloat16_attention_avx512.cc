// Compiled for AVX-512 BF16: nothing in this file may run, or be inlined elsewhere, before
// bfloat16_attention.cc has checked the processor.
#include "model/kernels/bfloat16_attention_avx512.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "model/kernels/bfloat16_tile.h"
#include "model/kernels/rows_kernel.h"
#include "model/kernels/vec_avx512.h"

namespace rematch::kernels {
namespace {

struct Vec : VecAvx512 {};  // of this file, so that templates over it are too

constexpr int64_t kQueries = 64;  // of a tile
constexpr int64_t kKeys = 256;    // of a block

template <class T>
std::unique_ptr<T[]> room(int64_t size) {
  return std::unique_ptr<T[]>(new T[size]);
}

/// A tile of queries and a block of keys that they attend to.
struct Block {
  int64_t first_query, num_queries, first_key, num_keys;
  int64_t num_panels() const { return round_up(num_keys, kPanelColumns) / kPanelColumns; }
  /// Keys of the block that a query of the tile attends to.
  int64_t num_visible(const AttentionHead& head, int64_t query) const {
    const int64_t end = head.is_causal ? first_query + query + 1 : head.num_tokens;
    return std::clamp<int64_t>(end - first_key, 0, num_keys);
  }
};

/// Calls tile(first query, queries), then block(Block) for every block of keys of that tile, then
/// finish(first query, queries).
template <class Tile, class OfBlock, class Finish>
void for_blocks(const AttentionHead& head, const Tile& tile, const OfBlock& block,
                const Finish& finish) {
  for (int64_t first = 0; first < head.num_tokens; first += kQueries) {
    const int64_t count = std::min(kQueries, head.num_tokens - first),
                  end = head.is_causal ? first + count : head.num_tokens;
    tile(first, count);
    for (int64_t key = 0; key < end; key += kKeys)
      block(Block{first, count, key, std::min(kKeys, end - key)});
    finish(first, count);
  }
}

/// A copy of a tile's rows, with zeros up to kQueries.
struct TileRows {
  explicit TileRows(int64_t width) : width(width), data(room<uint16_t>(kQueries * width)) {}
  void copy(const ConstHalfRows& x, int64_t first, int64_t count) const {
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(x.row(first + i), width, data.get() + i * width);
    std::fill(data.get() + count * width, data.get() + kQueries * width, uint16_t{0});
  }
  ConstHalfRows rows() const { return {data.get(), width}; }
  int64_t width;
  std::unique_ptr<uint16_t[]> data;
};

/// Keys or values of a head as the right side of products.
class Packed {
 public:
  enum class As { kColumns, kInputs };
  Packed(const ConstHalfRows& x, int64_t num_tokens, int64_t width, As as)
      : width_(width), as_(as), stride_(round_up(num_tokens, kPanelColumns) * kPanelColumns) {
    data_ = room<uint16_t>(stride_ / kPanelColumns * width);
    if (as == As::kColumns) {
      pack_as_columns(x, num_tokens, width, data_.get());
      return;
    }
    std::fill_n(data_.get(), stride_ / kPanelColumns * width, uint16_t{0});
    pack_as_inputs(x, num_tokens, width, data_.get(), stride_);
  }
  /// The tokens from `first` on, a multiple of 16.
  Panels from(int64_t first) const {
    return as_ == As::kColumns ? Panels{data_.get() + first * width_, kPanelColumns * width_}
                               : Panels{data_.get() + first * kPanelColumns, stride_};
  }

 private:
  int64_t width_;
  As as_;
  int64_t stride_;
  std::unique_ptr<uint16_t[]> data_;
};

__mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1 << std::max<int64_t>(count, 0)) - 1);
}

/// State of the softmax of one query over its blocks.
struct RunningRow {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

/// Turns a row of scores into probabilities relative to the largest score so far, zeros after the
/// visible ones. Returns the factor of everything before. What is not a number stays visible in the
/// sum.
float soften(const float* scores, int64_t num_visible, int64_t width, float scale, RunningRow& row,
             uint16_t* probabilities) {
  float factor = 1;
  __m512 largest = _mm512_set1_ps(row.largest), poison = _mm512_setzero_ps();
  for (int64_t j = 0; j < num_visible; j += 16) {
    const __mmask16 lanes = first_lanes(num_visible - j);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, scores + j), _mm512_set1_ps(scale));
    largest = _mm512_mask_max_ps(largest, lanes, largest, x);
    poison = _mm512_fmadd_ps(x, _mm512_setzero_ps(), poison);
  }
  if (num_visible > 0) {
    const float now = _mm512_reduce_max_ps(largest);
    factor = std::exp(row.largest - now);
    row.largest = now;
  }
  __m512 sum = poison;
  for (int64_t j = 0; j < width; j += 16) {
    const __mmask16 lanes = first_lanes(num_visible - j);
    const __m512 x = _mm512_fmsub_ps(_mm512_maskz_loadu_ps(lanes, scores + j),
                                     _mm512_set1_ps(scale), _mm512_set1_ps(row.largest));
    const __m512 p = _mm512_maskz_mov_ps(lanes, vec_exp<Vec>(x));
    sum = _mm512_add_ps(sum, p);
    store_half(probabilities + j, p);
  }
  row.sum = row.sum * factor + _mm512_reduce_add_ps(sum);
  return factor;
}

void multiply_row(float* x, int64_t width, float by) {
  for (int64_t d = 0; d < width; d += 16)
    _mm512_storeu_ps(x + d, _mm512_mul_ps(_mm512_loadu_ps(x + d), _mm512_set1_ps(by)));
}

/// Gradients of one head.
class Backward {
 public:
  Backward(const AttentionHead& head, const AttentionHeadOutput& output)
      : head_(head),
        output_(output),
        width_(head.head_dim),
        padded_(round_up(head.num_tokens, kPanelColumns)),
        k_columns_(head.k, head.num_tokens, width_, Packed::As::kColumns),
        v_columns_(head.v, head.num_tokens, width_, Packed::As::kColumns),
        k_inputs_(head.k, head.num_tokens, width_, Packed::As::kInputs) {
    std::fill_n(g_k_.get(), width_ * padded_, 0.0F);
    std::fill_n(g_v_.get(), width_ * padded_, 0.0F);
  }

  void begin_tile(int64_t first, int64_t count) {
    q_.copy(head_.q, first, count);
    g_.copy(output_.gradient, first, count);
    transpose(q_.rows(), kQueries, width_, q_turned_.get());
    transpose(g_.rows(), kQueries, width_, g_turned_.get());
    std::fill_n(g_q_.get(), kQueries * width_, 0.0F);
    for (int64_t i = 0; i < count; ++i) {
      __m512 sum = _mm512_setzero_ps();
      for (int64_t d = 0; d < width_; d += 16)
        sum = _mm512_fmadd_ps(load_half(g_.rows().row(i) + d),
                              load_half(output_.out.row(first + i) + d), sum);
      dots_[i] = _mm512_reduce_add_ps(sum);
    }
  }

  void add_block(const Block& block) {
    const int64_t rows = round_up(block.num_queries, kTileRows), panels = block.num_panels(),
                  columns = panels * kPanelColumns;
    multiply(q_.rows(), rows, k_columns_.from(block.first_key), panels, width_, scores_.get(),
             kKeys, Sum::kStore);
    multiply(g_.rows(), rows, v_columns_.from(block.first_key), panels, width_, g_p_.get(), kKeys,
             Sum::kStore);
    for (int64_t i = 0; i < kQueries; ++i) differentiate_row(block, i, columns);
    multiply({g_s_half_.get(), kKeys}, rows, k_inputs_.from(block.first_key),
             width_ / kPanelColumns, columns, g_q_.get(), width_, Sum::kAdd);
    // Gradients of keys and values, turned: the probabilities are the right side as they are.
    add_turned(g_turned_.get(), p_half_.get(), columns, g_v_.get() + block.first_key);
    add_turned(q_turned_.get(), g_s_half_.get(), columns, g_k_.get() + block.first_key);
  }

  void end_tile(const HalfRows& g_q, int64_t first, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = 0; d < width_; d += 16)
        store_half(g_q.row(first + i) + d, _mm512_loadu_ps(g_q_.get() + i * width_ + d));
    }
  }

  void finish(float* g_k, float* g_v) const {
    turn_back(g_k_.get(), g_k);
    turn_back(g_v_.get(), g_v);
  }

 private:
  /// Probabilities of a query and the gradients of its scores.
  void differentiate_row(const Block& block, int64_t i, int64_t columns) const {
    const int64_t visible = i < block.num_queries ? block.num_visible(head_, i) : 0;
    const float log_sum = i < block.num_queries ? output_.log_sums[block.first_query + i] : 0;
    // Adds nothing to a number; keeps what is none.
    const __m512 poison = _mm512_set1_ps(log_sum * 0.0F), dot = _mm512_set1_ps(dots_[i]);
    for (int64_t j = 0; j < columns; j += 16) {
      const __mmask16 lanes = first_lanes(visible - j);
      const __m512 x = _mm512_fmsub_ps(_mm512_maskz_loadu_ps(lanes, scores_.get() + i * kKeys + j),
                                       _mm512_set1_ps(head_.scale), _mm512_set1_ps(log_sum));
      const __m512 p = _mm512_maskz_mov_ps(lanes, _mm512_add_ps(vec_exp<Vec>(x), poison));
      const __m512 g_p = _mm512_maskz_loadu_ps(lanes, g_p_.get() + i * kKeys + j);
      const __m512 g_s =
          _mm512_mul_ps(_mm512_mul_ps(p, _mm512_sub_ps(g_p, dot)), _mm512_set1_ps(head_.scale));
      store_half(p_half_.get() + i * kKeys + j, p);
      store_half(g_s_half_.get() + i * kKeys + j, _mm512_maskz_mov_ps(lanes, g_s));
    }
  }

  void add_turned(const uint16_t* left, const uint16_t* right, int64_t columns, float* to) const {
    const int64_t stride = kQueries * kPanelColumns;
    pack_as_inputs({right, kKeys}, kQueries, columns, packed_.get(), stride);
    multiply({left, kQueries}, width_, {packed_.get(), stride}, columns / kPanelColumns, kQueries,
             to, padded_, Sum::kAdd);
  }

  void turn_back(const float* from, float* to) const {
    const __m512i lanes =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(static_cast<int>(padded_)));
    for (int64_t token = 0; token < head_.num_tokens; ++token) {
      for (int64_t d = 0; d < width_; d += 16)
        _mm512_storeu_ps(to + token * width_ + d,
                         _mm512_i32gather_ps(lanes, from + d * padded_ + token, 4));
    }
  }

  const AttentionHead& head_;
  const AttentionHeadOutput& output_;
  int64_t width_, padded_;
  Packed k_columns_, v_columns_, k_inputs_;
  TileRows q_{width_}, g_{width_};
  std::unique_ptr<uint16_t[]> q_turned_ = room<uint16_t>(kQueries * width_),
                              g_turned_ = room<uint16_t>(kQueries * width_),
                              p_half_ = room<uint16_t>(kQueries * kKeys),
                              g_s_half_ = room<uint16_t>(kQueries * kKeys),
                              packed_ = room<uint16_t>(kQueries * kKeys);
  std::unique_ptr<float[]> scores_ = room<float>(kQueries * kKeys),
                           g_p_ = room<float>(kQueries * kKeys),
                           g_q_ = room<float>(kQueries * width_);
  /// [width, padded tokens]
  std::unique_ptr<float[]> g_k_ = room<float>(width_ * padded_),
                           g_v_ = room<float>(width_ * padded_);
  float dots_[kQueries] = {};
};

}  // namespace

void bfloat16_attention_avx512(const AttentionHead& head, const HalfRows& out, float* log_sums) {
  const int64_t width = head.head_dim;
  const Packed keys(head.k, head.num_tokens, width, Packed::As::kColumns),
      values(head.v, head.num_tokens, width, Packed::As::kInputs);
  const TileRows q(width);
  const auto scores = room<float>(kQueries * kKeys), mixed = room<float>(kQueries * width);
  const auto probabilities = room<uint16_t>(kQueries * kKeys);
  RunningRow rows[kQueries];
  const auto begin = [&](int64_t first, int64_t count) {
    q.copy(head.q, first, count);
    std::fill_n(rows, kQueries, RunningRow{});
    std::fill_n(mixed.get(), kQueries * width, 0.0F);
  };
  const auto add = [&](const Block& block) {
    const int64_t num_rows = round_up(block.num_queries, kTileRows), panels = block.num_panels();
    multiply(q.rows(), num_rows, keys.from(block.first_key), panels, width, scores.get(), kKeys,
             Sum::kStore);
    for (int64_t i = 0; i < num_rows; ++i) {
      const int64_t visible = i < block.num_queries ? block.num_visible(head, i) : 0;
      const float factor = soften(scores.get() + i * kKeys, visible, panels * kPanelColumns,
                                  head.scale, rows[i], probabilities.get() + i * kKeys);
      if (factor != 1) multiply_row(mixed.get() + i * width, width, factor);
    }
    multiply({probabilities.get(), kKeys}, num_rows, values.from(block.first_key),
             width / kPanelColumns, panels * kPanelColumns, mixed.get(), width, Sum::kAdd);
  };
  const auto finish = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      multiply_row(mixed.get() + i * width, width, 1 / rows[i].sum);
      for (int64_t d = 0; d < width; d += 16)
        store_half(out.row(first + i) + d, _mm512_loadu_ps(mixed.get() + i * width + d));
      log_sums[first + i] = rows[i].largest + std::log(rows[i].sum);
    }
  };
  for_blocks(head, begin, add, finish);
}

void bfloat16_attention_gradients_avx512(const AttentionHead& head,
                                         const AttentionHeadOutput& output, const HalfRows& g_q,
                                         float* g_k, float* g_v) {
  Backward backward(head, output);
  for_blocks(
      head, [&](int64_t first, int64_t count) { backward.begin_tile(first, count); },
      [&](const Block& block) { backward.add_block(block); },
      [&](int64_t first, int64_t count) { backward.end_tile(g_q, first, count); });
  backward.finish(g_k, g_v);
}

}  // namespace rematch::kernels
