#pragma once
#include <ATen/ATen.h>

namespace rematch {

// Shapes: K positions, V vocabulary.

/// Cross-entropy of K positions: sums, and what a backward pass needs.
struct CeChunk {
  double sum = 0;             ///< Σ −log p(label)
  int64_t correct_count = 0;  ///< rows whose first largest logit is the label
  at::Tensor grad_KV;         ///< d(scale · sum) / d logits in the logits' dtype; undefined unless asked for
};

/// Cross-entropy in float32 with sums in float64; the logits are not sanitised, so a NaN stays a NaN (BEHAVIOUR 8.2).
/// @param logits_KV   any floating dtype, cast to float32 first
/// @param labels_K    int64, each in [0, V)
/// @param scale       multiplies the gradient
/// @param needs_grad  keeps one [K, V] tensor for the backward pass
/// Cost: two float32 copies of [K, V] at the peak.
CeChunk ce_chunk(const at::Tensor& logits_KV, const at::Tensor& labels_K, double scale, bool needs_grad);

}  // namespace rematch
