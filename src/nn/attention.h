#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <vector>

namespace rematch {

class SegmentPlan;

// Shapes: nq query heads, nkv key/value heads (nq a multiple of nkv), D head size.

/// How a decoder layer attends; the only thing in which a training row and a cached generation step differ.
class AttentionContext {
 public:
  virtual ~AttentionContext() = default;
  /// @param layer_idx  0-based decoder layer
  /// @param q          [..., nq, D] rotated; leading shape as the hidden states' ([T] for rows, [B, T] for padded batches)
  /// @param k,v        [..., nkv, D]; k rotated
  /// @return           [..., nq, D]
  virtual at::Tensor attend(int64_t layer_idx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) = 0;
  /// A copy that attends the same way when the backward pass recomputes a layer; null when that is impossible (a growing cache).
  virtual std::shared_ptr<AttentionContext> for_recomputing() const { return nullptr; }
};

/// Block-causal attention of a varlen row: each segment attends to itself only, causally. Cost Σ len², no [T, T] mask.
class VarlenCausalAttention : public AttentionContext {
 public:
  /// @param segment_lens  lengths of the row's segments, in order, each ≥ 0
  explicit VarlenCausalAttention(std::vector<int64_t> segment_lens) : segment_lens_(std::move(segment_lens)) {}
  at::Tensor attend(int64_t layer_idx, const at::Tensor& q_TND, const at::Tensor& k_TND, const at::Tensor& v_TND) override;
  std::shared_ptr<AttentionContext> for_recomputing() const override { return std::make_shared<VarlenCausalAttention>(*this); }

 private:
  std::vector<int64_t> segment_lens_;
  std::shared_ptr<const SegmentPlan> plan_;  ///< made by the first layer, used by all
};

/// Full attention inside each block of rows (vision frames). q,k,v [N, heads, D] → [N, heads, D].
at::Tensor block_full_attention(const at::Tensor& q_NHD, const at::Tensor& k_NHD, const at::Tensor& v_NHD,
                                const std::vector<int64_t>& block_lens);

/// Attention of a padded batch over a cache with an additive mask.
/// q [B, nq, Tq, D], k,v [B, nkv, Tk, D], mask [B, 1, Tq, Tk] → [B, nq, Tq, D].
at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

}  // namespace rematch
