#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/rollout/native/cpu/parameters.h"
#include "model/kernels/gemm.h"
#include "model/model.h"

namespace rematch {

/// A LayerNorm; an RMSNorm if `bias` is empty.
struct CpuVisionNorm {
  std::vector<float> weight, bias;
  float eps = 0;
};

/// A transformer block.
struct CpuVisionBlock {
  CpuVisionNorm norm1, norm2;
  kernels::PackedWeights qkv, proj, fc1, fc2;
  kernels::PackedWeights gate;  ///< for a gated MLP; else without outputs
  bool has_windows = false;     ///< rows attend only to their window
};

/// Merges merge² rows into one visual token.
struct CpuMerger {
  CpuVisionNorm norm;
  kernels::PackedWeights fc1, fc2;
  bool norm_after_shuffle = false;  ///< normalises all rows of a token together
};

/// The vision tower in the kernels' format: packed copies, merged with the adapter if there is one.
struct CpuTower {
  kernels::PackedWeights patch_embed;
  at::Tensor pos_embed;  ///< the learned table, for look-ups; undefined = none
  std::vector<CpuVisionBlock> blocks;
  CpuMerger merger;
  std::vector<CpuMerger> deepstack;  ///< VisionDescription::deepstack_mergers
  CpuMemory memory;                  ///< owns the data
};

/// @param model  on the CPU, float32 or bfloat16. Cost: one pass over the tower's weights
CpuTower load_cpu_tower(const Model& model);

}  // namespace rematch
