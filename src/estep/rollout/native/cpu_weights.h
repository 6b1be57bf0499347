#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "kernels/gemm.h"
#include "model/qwen3vl.h"

namespace rematch {

/// One decoder layer as the kernels read it.
struct CpuLayer {
  std::vector<float> input_norm, post_attention_norm, q_norm, k_norm;
  kernels::Weights q, k, v, o, gate, up, down;
};

/// The text tower of a model as the kernels read it: matrices are the training tensors themselves, wherever they lie. Only what an adapter
/// changes is a tensor of its own, merged when this was made; norms, a few kilobytes, are copied as float32.
struct CpuWeights {
  std::vector<CpuLayer> layers;
  kernels::Weights embedding;  ///< [V, H], looked up
  kernels::Weights head;       ///< [V, H], multiplied with
  std::vector<float> final_norm;
  std::vector<float> inverse_frequencies;  ///< [D / 2]
  std::vector<int> axis;                   ///< [D / 2]: which of temporal, height, width turns a column
  std::vector<at::Tensor> kept;            ///< owners of what the pointers point to
};

/// @param model  on the CPU, float32 or bfloat16. Cost: nothing but an adapter's merge
CpuWeights take_cpu_weights(const Qwen3VL& model);

}  // namespace rematch
