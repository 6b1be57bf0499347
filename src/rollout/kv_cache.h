#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "nn/attention.h"

namespace rematch {

// Shapes: B rows, T new tokens, L columns (left padding, prompt and generated ids), nq query heads,
// nkv key/value heads, D head size.

/// Keys and values of a left-padded batch, one tensor [layer, 2, B, nkv, capacity, D]. Column j
/// holds step j of every row; the first `padding` columns of a row are empty.
class KvCache {
 public:
  struct Shape {
    int64_t num_layers = 0;
    int64_t num_kv_heads = 0;
    int64_t head_dim = 0;
  };
  /// @param paddings  left padding of each row, in columns
  /// @param capacity  columns to reserve
  KvCache(const Shape& shape, std::vector<int64_t> paddings, int64_t capacity,
          const at::TensorOptions& tensor_options);

  int64_t num_rows() const { return static_cast<int64_t>(paddings_.size()); }
  int64_t len() const { return len_; }
  int64_t capacity() const { return capacity_; }
  const std::vector<int64_t>& paddings() const { return paddings_; }

  /// Stores T new columns of a layer after the first len(). k, v [B, T, nkv, D]
  void write(int64_t layer_idx, const at::Tensor& k, const at::Tensor& v);
  /// Keys (or values) of a layer from column `first` up to `end`, a view [B, nkv, end − first, D].
  at::Tensor keys(int64_t layer_idx, int64_t first, int64_t end) const {
    return view(layer_idx, 0, first, end);
  }
  at::Tensor values(int64_t layer_idx, int64_t first, int64_t end) const {
    return view(layer_idx, 1, first, end);
  }
  /// Counts columns as written, after every layer has stored them.
  void advance(int64_t num_columns) { len_ += num_columns; }

  /// Keeps the given rows (ascending), drops columns that are padding in all of them, and sets the
  /// capacity in columns, counted before dropping. Cost: one copy of the remaining cache.
  void rebuild(const std::vector<int64_t>& row_idx, int64_t capacity);

 private:
  at::Tensor view(int64_t layer_idx, int64_t which, int64_t first, int64_t end) const;

  std::vector<int64_t> paddings_;
  int64_t capacity_ = 0;
  int64_t len_ = 0;
  at::Tensor storage_;
};

/// Attention of a left-padded batch over its cache; a mask excludes the padding. Hidden states are
/// [B, T, H].
class CachedAttention : public AttentionContext {
 public:
  /// @param num_new  tokens after those in the cache; the caller advances the cache after the
  /// forward pass
  CachedAttention(KvCache& cache, int64_t num_new, at::ScalarType dtype, const at::Device& device);
  /// q [B, T, nq, D], k and v [B, T, nkv, D] → [B, T, nq, D]
  at::Tensor attend(int64_t layer_idx, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v) override;

 private:
  KvCache& cache_;
  int64_t first_ = 0;  ///< columns before it are padding of every row
  int64_t end_ = 0;
  at::Tensor mask_;  ///< [B, 1, T, end − first], 0 or -inf
};

}  // namespace rematch
