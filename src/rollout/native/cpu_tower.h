#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "rollout/native/cpu_parameters.h"
#include "kernels/gemm.h"
#include "model/model.h"

namespace rematch {

/// A LayerNorm, or without a bias an RMSNorm.
struct CpuVisionNorm {
  std::vector<float> weight, bias;
  float eps = 0;
};

/// A transformer block.
struct CpuVisionBlock {
  CpuVisionNorm norm1, norm2;
  kernels::PackedWeights qkv, proj, fc1, fc2;
  kernels::PackedWeights gate;  ///< of a gated MLP; no outputs without one
  bool has_windows = false;     ///< rows attend to their window only
};

/// Merges merge² rows into one visual token.
struct CpuMerger {
  CpuVisionNorm norm;
  kernels::PackedWeights fc1, fc2;
  bool norm_after_shuffle = false;  ///< over all rows of a token, not each
};

/// The vision tower as the kernels read it: matrices are packed copies, merged with the adapter if
/// there is one.
struct CpuTower {
  kernels::PackedWeights patch_embed;
  at::Tensor pos_embed;  ///< the learned table, for look-ups; undefined = none
  std::vector<CpuVisionBlock> blocks;
  CpuMerger merger;
  std::vector<CpuMerger> deepstack;  ///< VisionDescription::deepstack_mergers
  CpuMemory memory;                  ///< owner of what the pointers point to
};

/// @param model  on the CPU, float32 or bfloat16. Cost: one pass over the tower's weights
CpuTower take_cpu_tower(const Model& model);

}  // namespace rematch
