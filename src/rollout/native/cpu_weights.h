#pragma once
#include <vector>

#include "kernels/gemm.h"
#include "model/model.h"
#include "rollout/native/cpu_parameters.h"

namespace rematch {

struct CpuRmsNorm {
  std::vector<float> weight;  ///< empty = no norm
  float eps = 0;
};

/// One decoder layer in the kernels' format.
struct CpuLayer {
  CpuRmsNorm attention_norm, mlp_norm, q_norm, k_norm;
  kernels::PackedWeights qkv;  ///< queries, keys and values, stacked
  kernels::PackedWeights o, gate, up, down;
  int64_t deepstack = -1;  ///< visual feature to add after the layer; -1 = none
};

/// The text tower in the kernels' format: packed copies of matrices, merged with the adapter if
/// there is one, and float32 copies of norms. The embedding is the training tensor itself.
struct CpuWeights {
  std::vector<CpuLayer> layers;
  kernels::Matrix embedding;    ///< [V, H], for look-ups
  kernels::PackedWeights head;  ///< [V, H], for products
  CpuRmsNorm final_norm;
  std::vector<float> inverse_frequencies;  ///< [D / 2]
  /// [D / 2]: position axis (temporal, height, width) that rotates a column
  std::vector<int64_t> axis;
  CpuMemory memory;  ///< owns the data
};

/// @param model  on the CPU, float32 or bfloat16. Cost: one pass over the weights, and memory
/// for a second copy
CpuWeights load_cpu_weights(const Model& model);

}  // namespace rematch
