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

/// One decoder layer as the kernels read it.
struct CpuLayer {
  CpuRmsNorm attention_norm, mlp_norm, q_norm, k_norm;
  kernels::PackedWeights qkv;  ///< queries, keys and values, stacked
  kernels::PackedWeights o, gate, up, down;
  int64_t deepstack = -1;  ///< visual feature that follows the layer; -1 = none
};

/// The text tower of a model as the kernels read it: matrices are packed copies, merged with the
/// adapter if there is one; norms, a few kilobytes, are copied as float32. The embedding is the
/// training tensor itself.
struct CpuWeights {
  std::vector<CpuLayer> layers;
  kernels::Matrix embedding;    ///< [V, H], looked up
  kernels::PackedWeights head;  ///< [V, H], multiplied with
  CpuRmsNorm final_norm;
  std::vector<float> inverse_frequencies;  ///< [D / 2]
  /// [D / 2]: which of temporal, height, width rotates a column
  std::vector<int64_t> axis;
  CpuMemory memory;  ///< owner of what the pointers point to
};

/// @param model  on the CPU, float32 or bfloat16. Cost: one pass over the weights, and the memory
/// of the weights again
CpuWeights take_cpu_weights(const Model& model);

}  // namespace rematch
