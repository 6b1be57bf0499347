#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace rematch {

// Shapes: T tokens of a row, K positions of a chunk, H hidden, V vocabulary.

/// Sums what the chunks of a row give its hidden states and the head's own parameters, chunk by chunk in call order: no logits outlive
/// their chunk, and the backward pass of the row starts from the sums. Memory: one gradient of the hidden states, one of each head parameter
/// (float32).
class HeadGradients {
 public:
  /// @param hidden_TH  final hidden states, with graph where they need one
  /// @param head_KV    maps [K, H] to [K, V]; its parameters are found in the graph of the first chunk
  HeadGradients(at::Tensor hidden_TH, const std::function<at::Tensor(const at::Tensor&)>& head_KV);

  /// Logits [K, V] of the hidden states at `rows_K` (int64), without graph for the caller.
  at::Tensor logits_KV(const at::Tensor& rows_K);
  /// Whether the last chunk needs a gradient.
  bool needs_gradient() const { return logits_KV_.defined(); }
  /// Takes the gradient by the logits of the last chunk through the head. Call only when needs_gradient().
  void add(const at::Tensor& grad_KV);

  /// The row's loss `value` (scalar) with a graph: its backward pass hands on the sums. One backward pass only.
  at::Tensor attach(const at::Tensor& value);

 private:
  void find_parameters();
  void add_hidden(const at::Tensor& grad_KH);

  at::Tensor hidden_TH_;
  std::function<at::Tensor(const at::Tensor&)> head_KV_;
  bool has_parameters_ = false;             ///< parameters_ is known
  std::vector<at::Tensor> parameters_;      ///< leaves of the head that require grad
  std::vector<at::Tensor> parameter_sums_;  ///< float32, parallel to parameters_
  at::Tensor hidden_sum_TH_;
  // The chunk between logits_KV() and add().
  at::Tensor rows_K_, hidden_KH_, logits_KV_;
};

}  // namespace rematch
