#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "nn/layers.h"

namespace rematch {

// Shapes: K positions, H hidden, V vocabulary.

/// The language-model head as the loss takes gradients through it. Of its tensors those are trained that require grad.
struct Head {
  std::function<at::Tensor(const at::Tensor& hidden_KH)> logits_KV;  ///< [K, H] → [K, V]
  at::Tensor weight_VH;                     ///< where logits_KV is hidden · weightᵀ and nothing else; else undefined
  std::vector<at::Tensor> parameters = {};  ///< whatever else logits_KV reads: an adapter's tensors and its frozen base

  /// The head that a layer is, with or without an adapter.
  static Head of(const LinearWeights& layer);
};

}  // namespace rematch
