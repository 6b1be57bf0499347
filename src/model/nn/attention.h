#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/nn/attention_choice.h"
#include "model/nn/delta_rule.h"

namespace rematch {

class SegmentPlan;

// Shapes: nq query heads, nkv key/value heads (nq a multiple of nkv), D head size.

/// Attention and delta rule between the tokens of a pass: the only difference between a training
/// row and a cached generation step.
class AttentionContext {
 public:
  virtual ~AttentionContext() = default;
  /// @param layer_idx  0-based, among the layers with attention
  /// @param q          [..., nq, D] rotated; leading shape of the hidden states ([T] for rows, [B,
  /// T] for padded batches)
  /// @param k,v        [..., nkv, D]; k rotated
  /// @return           [..., nq, D]
  virtual at::Tensor attend(int64_t layer_idx, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) = 0;
  /// Convolution and gated delta rule. The default is a bug: such a model must be refused before.
  /// @param layer_idx  0-based, among the layers with the delta rule
  /// @return           [..., N, V] in the dtype of qkv
  virtual at::Tensor mix_by_delta(int64_t layer_idx, const DeltaTokens& tokens);
  /// A copy with which the backward pass can recompute a layer; null if that is impossible (a
  /// growing cache).
  virtual std::shared_ptr<AttentionContext> for_recomputing() const { return nullptr; }
};

/// Attention inside each segment of a varlen row, by the kernel of choose_attention(). Cost Σ len²,
/// no [T, T] mask. The first layer prepares the tensors that describe the segments; all layers use
/// them.
class SegmentAttention {
 public:
  /// @param segment_lens  lengths of consecutive segments, each ≥ 0
  /// @param is_causal     false: full attention (vision frames)
  SegmentAttention(std::vector<int64_t> segment_lens, bool is_causal)
      : segment_lens_(std::move(segment_lens)), is_causal_(is_causal) {}
  /// q [T, nq, D], k,v [T, nkv, D] → [T, nq, D].
  at::Tensor attend(const at::Tensor& q_TND, const at::Tensor& k_TND, const at::Tensor& v_TND);

 private:
  std::vector<int64_t> segment_lens_;
  bool is_causal_;
  std::shared_ptr<const SegmentPlan> plan_;  ///< for kGroups
  std::optional<SegmentBounds> bounds_;      ///< for kVarlen
};

/// Block-causal mixing of a varlen row: each segment attends to itself only, causally, and starts
/// from an empty convolution window and a state of zeros.
class VarlenCausalAttention : public AttentionContext {
 public:
  /// @param segment_lens  lengths of the row's segments, in order, each ≥ 0
  explicit VarlenCausalAttention(std::vector<int64_t> segment_lens)
      : segment_lens_(segment_lens), segments_(std::move(segment_lens), /*is_causal=*/true) {}
  at::Tensor attend(int64_t, const at::Tensor& q_TND, const at::Tensor& k_TND,
                    const at::Tensor& v_TND) override {
    return segments_.attend(q_TND, k_TND, v_TND);
  }
  at::Tensor mix_by_delta(int64_t layer_idx, const DeltaTokens& tokens) override;
  std::shared_ptr<AttentionContext> for_recomputing() const override {
    return std::make_shared<VarlenCausalAttention>(*this);
  }

 private:
  std::vector<int64_t> segment_lens_;
  SegmentAttention segments_;
  // made by the first layer that needs them
  std::shared_ptr<const ChunkPlan> chunks_;
  at::Tensor conv_slots_;  ///< of spaced_rows(), on devices
};

/// Attention of a padded batch over a cache with an additive mask.
/// q [B, nq, Tq, D], k,v [B, nkv, Tk, D], mask [B, 1, Tq, Tk] → [B, nq, Tq, D].
at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& mask);

}  // namespace rematch
