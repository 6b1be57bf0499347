#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "base/flow/grid.h"
#include "model/layer_source.h"
#include "model/model.h"
#include "model/nn/attention.h"
#include "model/nn/layers.h"
#include "model/nn/rope.h"

namespace rematch {

// Shapes: N vision rows (patches), D vision hidden, H text hidden, M = N/merge² visual tokens.

/// Joins merge² neighbouring rows into one visual token.
struct PatchMerger {
  LayerNormWeights norm;
  LinearWeights fc1;
  LinearWeights fc2;
  bool norm_after_shuffle = false;  ///< norm over merge²·D values, not D

  /// [N, D] → [M, H]
  at::Tensor forward(const at::Tensor& hidden_ND) const;
};

struct VisionBlock {
  LayerNormWeights norm1;  ///< an RMSNorm if it has no bias
  LayerNormWeights norm2;
  LinearWeights qkv;
  LinearWeights proj;
  LinearWeights gate;  ///< of a gated MLP; undefined without one
  LinearWeights fc1;
  LinearWeights fc2;
};

/// A vision tower (MODEL 3).
class VisionTower {
 public:
  /// Reads parameters from `source`, in checkpoint order.
  /// @param vision  must outlive the tower
  VisionTower(const VisionDescription& vision, LayerSource& source);
  VisionTower(const VisionTower&) = delete;

  /// @param pixel_values_NC  rows of all images in order, any float dtype
  /// @param grid_thw         patches of each image; sides are multiples of the merge size
  VisionFeatures forward(const at::Tensor& pixel_values_NC,
                         const std::vector<GridThw>& grid_thw) const;

  /// Stores only the inputs of each block and recomputes the rest in the backward pass
  /// (model/nn/checkpoint.h). The tower must then outlive its graphs.
  void set_gradient_checkpointing(bool on) { checkpointing_ = on; }

 private:
  at::Tensor patch_embed_ND(const at::Tensor& pixel_values_NC) const;
  /// @param attention  inside frames or windows
  at::Tensor block_forward(const VisionBlock& block, const at::Tensor& hidden_ND,
                           const RopeTable& rope, SegmentAttention& attention) const;

  const VisionDescription& vision_;
  LinearWeights patch_embed_;  ///< convolution weight [D, 3, T, p, p]
  at::Tensor pos_embed_;       ///< undefined without learned positions
  std::vector<VisionBlock> blocks_;
  std::vector<LayerSource::Need> needs_;  ///< of the blocks
  PatchMerger merger_;
  std::vector<PatchMerger> deepstack_mergers_;
  bool checkpointing_ = false;
};

}  // namespace rematch
