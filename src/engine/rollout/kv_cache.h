#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/rollout/state_cache.h"
#include "model/nn/attention.h"
#include "model/nn/attention_choice.h"

namespace rematch {

// Shapes: B rows, T new tokens, L columns (left padding, prompt and generated ids), nq query heads,
// nkv key/value heads, D head size.

/// Keys and values of a left-padded batch, one tensor [layer, 2, B, nkv, capacity, D]. Column j
/// holds step j of every row; the first `padding` columns of a row are empty.
class KvCache {
 public:
  /// On a device attention sees whole steps of columns, so that it gets few different shapes.
  static constexpr int64_t kColumnStep = 128;

  struct Shape {
    int64_t num_layers = 0;
    int64_t num_kv_heads = 0;
    int64_t head_dim = 0;
  };
  /// @param paddings  left padding of each row, in columns
  /// @param capacity  columns to reserve; on a device rounded up to a multiple of kColumnStep
  KvCache(const Shape& shape, std::vector<int64_t> paddings, int64_t capacity,
          const at::TensorOptions& tensor_options);

  int64_t num_rows() const { return std::ssize(paddings_); }
  int64_t len() const { return len_; }
  int64_t capacity() const { return capacity_; }
  const std::vector<int64_t>& paddings() const { return paddings_; }
  /// 1 on a CPU, else kColumnStep. Columns that were never written hold zeros on a device.
  int64_t column_step() const { return storage_.is_cpu() ? 1 : kColumnStep; }

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
  void allocate(std::vector<int64_t> sizes, const at::TensorOptions& options);

  std::vector<int64_t> paddings_;
  int64_t capacity_ = 0;
  int64_t len_ = 0;
  at::Tensor storage_;
};

/// Attention of a left-padded batch over its cache; a mask excludes the padding. The prefill uses
/// cumulative lengths instead of a mask where attention supports them. Hidden states are [B, T, H].
class CachedAttention : public AttentionContext {
 public:
  /// @param num_new  tokens after those in the cache; the caller advances the cache after the
  /// forward pass
  /// @param states  of the layers with the delta rule; null = the model has none
  CachedAttention(KvCache& cache, int64_t num_new, at::ScalarType dtype, const at::Device& device,
                  StateCache* states = nullptr);
  /// q [B, T, nq, D], k and v [B, T, nkv, D] → [B, T, nq, D]
  at::Tensor attend(int64_t layer_idx, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v) override;
  at::Tensor mix_by_delta(int64_t layer_idx, const DeltaTokens& tokens) override;

 private:
  /// The rows of a prefill that are not padding, for one call with cumulative lengths.
  struct VarlenPrefill {
    at::Tensor rows;  ///< [real rows] of B·T
    SegmentBounds bounds;
  };
  at::Tensor attend_prefill(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
  void make_mask();
  void find_rows(const at::Device& device);

  KvCache& cache_;
  StateCache* states_;
  int64_t num_new_;
  at::ScalarType dtype_;
  at::Device device_;
  int64_t first_ = 0;  ///< columns before it are padding of every row
  int64_t end_ = 0;
  at::Tensor mask_;  ///< [B, 1, T, end − first], 0 or -inf; made by the first layer that needs it
  std::optional<VarlenPrefill> prefill_;
};

}  // namespace rematch
