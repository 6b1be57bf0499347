#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "model/nn/chunk_plan.h"

namespace rematch {

// The gated delta rule (MODEL 13.3), float32 inside. Shapes: T tokens of a row, N value heads, K
// and V widths of a key and of a value head, B sequences.

/// Heads of a layer.
struct DeltaHeads {
  int64_t num_key_heads = 0;
  int64_t num_value_heads = 0;  ///< a multiple of num_key_heads; consecutive ones share a key head
  int64_t key_dim = 0, value_dim = 0;

  int64_t key_width() const { return num_key_heads * key_dim; }
  int64_t num_channels() const { return 2 * key_width() + num_value_heads * value_dim; }
};

/// Inputs of a row: concatenated queries, keys and values after the convolution, not yet
/// normalised; log decay (≤ 0) and learning rate of each value head.
struct DeltaInputs {
  at::Tensor qkv_TC;   ///< any float dtype
  at::Tensor g_TN;     ///< float32
  at::Tensor beta_TN;  ///< float32
};

/// Arguments of AttentionContext::mix_by_delta(): DeltaInputs before the convolution.
struct DeltaTokens {
  at::Tensor qkv;          ///< [..., C]
  at::Tensor g, beta;      ///< [..., N]
  at::Tensor conv_weight;  ///< [C, 1, J]
  DeltaHeads heads;
};

/// Outputs of a row, each segment from its first state: [T, N, V] in the dtype of qkv.
/// Differentiable. Keeps its inputs and a state for every few chunks; the backward pass recomputes
/// the rest, so its memory beyond the gradients does not grow with the length. Cost per token and
/// head: about K·V·3 + 64·(2·K + 2·V) products.
/// States are [segments, N, K, V] float32 in the order of plan.segment_order(), without gradients.
/// @param final_states  null = not wanted
/// @param first_states  undefined = zeros
at::Tensor chunked_delta_rule(const DeltaInputs& inputs, const DeltaHeads& heads,
                              const std::shared_ptr<const ChunkPlan>& plan,
                              at::Tensor* final_states = nullptr,
                              const at::Tensor& first_states = {});

/// Chunks that the chunked rule prepares together, unless a step has more.
inline constexpr int64_t kGroupChunksOnCpu = 8, kGroupChunksOnDevices = 128;

/// One more token of every sequence, by the recurrence itself. Without autograd.
/// @param inputs      of B tokens, one per sequence
/// @param state_BNKV  float32; updated in place
/// @return            [B, N, V] in the dtype of qkv
at::Tensor delta_rule_step(const DeltaInputs& inputs, const DeltaHeads& heads,
                           const at::Tensor& state_BNKV);

}  // namespace rematch
