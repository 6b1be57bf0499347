#pragma once
#include <variant>
#include <vector>

#include "engine/rollout/native/cpu/parameters.h"
#include "model/kernels/gemm.h"
#include "model/model.h"

namespace rematch {

struct CpuRmsNorm {
  std::vector<float> weight;  ///< empty = no norm
  float eps = 0;
};

/// A mixer of the delta rule in the kernels' format.
struct CpuDelta {
  kernels::PackedWeights in;  ///< queries, keys, values, z, b and a, stacked
  kernels::PackedWeights out;
  std::vector<float> taps;     ///< of the convolution: [taps, channels], oldest token first
  std::vector<float> rate;     ///< [nv]: exp(a_log)
  std::vector<float> dt_bias;  ///< [nv]
  CpuRmsNorm norm;             ///< of each value head
};

/// A mixer of attention in the kernels' format.
struct CpuAttention {
  CpuRmsNorm q_norm, k_norm;
  kernels::PackedWeights in;  ///< queries, keys, values and output gates if any, stacked
  kernels::PackedWeights out;
  bool has_gate = false;
};

/// One decoder layer in the kernels' format.
struct CpuLayer {
  CpuRmsNorm mixer_norm, mlp_norm;
  std::variant<CpuAttention, CpuDelta> mixer;
  int64_t cache_idx = 0;  ///< among the layers with the same kind of mixer
  kernels::PackedWeights gate, up, down;

  const kernels::PackedWeights& mixer_out() const {
    return std::visit([](const auto& mixer) -> const auto& { return mixer.out; }, mixer);
  }
  int64_t deepstack = -1;  ///< visual feature to add after the layer; -1 = none
};

/// The text tower in the kernels' format: packed copies of matrices, merged with the adapter if
/// there is one, and float32 copies of norms. The embedding is the training tensor itself.
struct CpuWeights {
  std::vector<CpuLayer> layers;
  kernels::Matrix embedding;    ///< [V, H], for look-ups
  kernels::PackedWeights head;  ///< [V, H], for products
  CpuRmsNorm final_norm;
  std::vector<float> inverse_frequencies;  ///< [rotated values / 2]
  /// [rotated values / 2]: position axis (temporal, height, width) that rotates a column
  std::vector<int64_t> axis;
  CpuMemory memory;  ///< owns the data
};

/// @param model  on the CPU, float32 or bfloat16. Cost: one pass over the weights, and memory
/// for a second copy
CpuWeights load_cpu_weights(const Model& model);

}  // namespace rematch
