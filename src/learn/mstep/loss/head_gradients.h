#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "learn/mstep/loss/head.h"

namespace rematch {

// Shapes: T tokens of a row, K positions of a chunk, H hidden, V vocabulary.

/// Sums the gradients of a row's chunks with respect to its hidden states and the head's
/// parameters, in call order: no logits outlive their chunk, and the row's backward pass starts
/// from the sums. Memory, in float32: one gradient of the hidden states and one of each head
/// parameter.
class HeadGradients {
 public:
  /// @param hidden_TH  final hidden states, with graph if they need one
  HeadGradients(at::Tensor hidden_TH, const Head& head);

  /// True if the hidden states or the head need gradients.
  bool are_needed() const { return are_needed_; }
  /// Logits [K, V] of the hidden states at `rows_K` (int64), without a graph.
  at::Tensor logits_KV(const at::Tensor& rows_K);
  /// Propagates the gradient of the last chunk's logits through the head. Call only when
  /// are_needed().
  void add(const at::Tensor& grad_KV);

  /// The row's loss `value` (scalar) with a graph that propagates the sums. One backward pass only.
  at::Tensor attach(const at::Tensor& value);

 private:
  void add_hidden(const at::Tensor& grad_KH);
  void add_product(const at::Tensor& grad_KV);
  void add_through_graph(const at::Tensor& grad_KV);

  at::Tensor hidden_TH_;
  const Head& head_;
  std::vector<at::Tensor> parameters_;      ///< of the head, with requires_grad
  std::vector<at::Tensor> parameter_sums_;  ///< float32, parallel to parameters_
  at::Tensor hidden_sum_TH_;
  bool are_needed_;
  /// the head's gradient is summed in place, without a second matrix of the head's size
  bool is_product_;
  // The chunk between logits_KV() and add(). Logits are kept, with a graph, only if add() uses it.
  at::Tensor rows_K_, hidden_KH_, logits_KV_;
};

}  // namespace rematch
