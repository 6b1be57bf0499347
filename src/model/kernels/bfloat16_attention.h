#pragma once
#include <cstdint>

namespace rematch::kernels {

// Attention of training rows in bfloat16 with its gradient, one head at a time. Scores, sums and
// the softmax are float32; probabilities and the gradients of scores are rounded to bfloat16 before
// they enter a product. A token's output depends only on the tokens that it attends to.

/// True if this processor multiplies bfloat16 (AVX-512 BF16), REMATCH_ISA does not forbid it, and
/// it is not Intel's: there torch's own operator, which uses MKL, was not compared.
bool has_bfloat16_attention();

/// Rows of bfloat16 values.
struct HalfRows {
  uint16_t* data = nullptr;
  int64_t stride = 0;  ///< values from one row to the next
  uint16_t* row(int64_t i) const { return data + i * stride; }
};
struct ConstHalfRows {
  const uint16_t* data = nullptr;
  int64_t stride = 0;
  const uint16_t* row(int64_t i) const { return data + i * stride; }
};

/// Queries, keys and values of a head: as many rows each.
struct AttentionHead {
  ConstHalfRows q, k, v;
  int64_t num_tokens = 0;
  int64_t head_dim = 0;  ///< a multiple of 16
  float scale = 1;       ///< of the scores
  bool is_causal = false;
};

/// Writes softmax(scale·q·kᵀ)·v, and the logarithm of each row's sum of exponentials.
void bfloat16_attention(const AttentionHead& head, const HalfRows& out, float* log_sums);

/// The results of bfloat16_attention(), and the gradient of its output.
struct AttentionHeadOutput {
  ConstHalfRows out;
  const float* log_sums = nullptr;
  ConstHalfRows gradient;
};

/// Writes the gradients of the head's inputs; those of keys and values in float32, [tokens,
/// head_dim], because heads may share them.
void bfloat16_attention_gradients(const AttentionHead& head, const AttentionHeadOutput& output,
                                  const HalfRows& g_q, float* g_k, float* g_v);

}  // namespace rematch::kernels
