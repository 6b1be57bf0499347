#pragma once
#include <ATen/core/Tensor.h>

#include "model/nn/chunk_plan.h"
#include "model/nn/delta_rule.h"

namespace rematch {

// The part of the chunked delta rule that is the same for any state (MODEL 13.3): all chunks at
// once. Shapes: n chunks of C tokens, N value heads, K and V widths of a key and of a value head;
// all float32 and contiguous.

/// x / √(Σx² + eps) over the last dimension, and its factor.
struct L2Normalised {
  explicit L2Normalised(const at::Tensor& x);
  /// Gradient of x for the gradient of `value`.
  at::Tensor gradient(const at::Tensor& g) const;
  at::Tensor factor, value;
};

/// The chunks [first, first + count) of a plan.
struct DeltaChunks {
  DeltaChunks(const DeltaInputs& inputs, const DeltaHeads& heads, const ChunkPlan& plan,
              int64_t first, int64_t count);

  DeltaHeads heads;
  L2Normalised q_normalised, k_normalised;  ///< [n, key heads, C, K]
  at::Tensor q, k;                          ///< [n, N, C, K]; q is scaled by K^-½
  at::Tensor v;                             ///< [n, N, C, V]
  at::Tensor beta;                          ///< [n, N, C, 1]
  at::Tensor decay;       ///< [n, N, C, C]: from token j to token i, 0 if j is after i
  at::Tensor from_start;  ///< [n, N, C, 1]: decay from the start of the chunk to each token
  at::Tensor to_end;      ///< [n, N, C, 1]: decay from each token to the end of the chunk
  at::Tensor across;      ///< [n, N, 1, 1]: decay over the whole chunk
  at::Tensor overlap;     ///< [n, N, C, C], strictly lower: how keys of the chunk overlap
  at::Tensor inverse;     ///< [n, N, C, C]: of identity + overlap
  at::Tensor u;           ///< [n, N, C, V]: new values without a state
  at::Tensor w;           ///< [n, N, C, K]: keys that read the state
  at::Tensor q_from_start, k_to_end;  ///< q, k times the decays
  at::Tensor attention;               ///< [n, N, C, C]: of queries to new values
};

/// Gradients of what the scan reads.
struct DeltaScanGradients {
  at::Tensor u, w, q_from_start, k_to_end, attention;
  at::Tensor across;  ///< [n, N, 1, 1]
};

/// Gradients of the inputs, in chunks.
struct DeltaInputGradients {
  at::Tensor qkv;      ///< [n, C, channels]
  at::Tensor g, beta;  ///< [n, C, N]
};

DeltaInputGradients chunk_gradients(const DeltaChunks& chunks, const DeltaScanGradients& scan);

/// [n, C, heads · D] as [n, heads, C, D], float32.
at::Tensor split_heads(const at::Tensor& x, int64_t num_heads);

}  // namespace rematch
