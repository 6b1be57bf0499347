#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/nn/delta_rule.h"

namespace rematch {

/// States of the delta rule and windows of its convolutions of a batch; their size does not depend
/// on the lengths of the sequences. Shapes: B rows, J taps, C channels, N value heads, K and V
/// widths of a key and of a value head.
class StateCache {
 public:
  struct Shape {
    int64_t num_layers = 0;
    int64_t num_taps = 0;
    DeltaHeads heads;
  };
  /// Everything starts at 0.
  /// @param options  of the windows; states are float32
  StateCache(const Shape& shape, int64_t num_rows, const at::TensorOptions& options);

  /// Inputs of a layer's convolution before the next token, oldest first, a view [B, J − 1, C].
  at::Tensor window(int64_t layer_idx) const { return windows_.select(0, layer_idx); }
  /// States of a layer, a view [B, N, K, V].
  at::Tensor states(int64_t layer_idx) const { return states_.select(0, layer_idx); }

  /// Keeps the given rows (ascending).
  void keep_rows(const std::vector<int64_t>& row_idx);

 private:
  at::Tensor windows_;  ///< [layers, B, J − 1, C]
  at::Tensor states_;   ///< [layers, B, N, K, V]
};

/// Mixes the first tokens of the rows of a left-padded batch, whose states are still empty. Padding
/// is left out and its outputs are 0.
/// @param tokens  [B, P, ...].
/// @return [B, P, N, V]
at::Tensor prefill_states(StateCache& cache, int64_t layer_idx, const DeltaTokens& tokens,
                          const std::vector<int64_t>& paddings);

/// Mixes the next tokens of every row, one after the other.
/// @param tokens  [B, T, ...]
/// @return  [B, T, N, V]
at::Tensor step_states(StateCache& cache, int64_t layer_idx, const DeltaTokens& tokens);

}  // namespace rematch
