#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "model/nn/layers.h"

namespace rematch {

// Shapes: K positions, H hidden, V vocabulary.

/// The language-model head as the loss differentiates it. Tensors with requires_grad are trained.
struct Head {
  std::function<at::Tensor(const at::Tensor& hidden_KH)> logits_KV;  ///< [K, H] → [K, V]
  /// the weight if logits_KV is exactly hidden · weightᵀ; else undefined
  at::Tensor weight_VH;
  /// other tensors that logits_KV reads: those of an adapter and its frozen base
  std::vector<at::Tensor> parameters = {};

  /// The head of a model, with or without an adapter.
  static Head of(const LinearWeights& layer);
};

}  // namespace rematch
