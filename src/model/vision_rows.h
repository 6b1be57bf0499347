#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "flow/grid.h"
#include "model/families/description.h"
#include "nn/rope.h"

namespace rematch {

/// Values that depend on the grids alone, shared by all blocks of the vision tower.
struct VisionRows {
  at::Tensor position_ND;           ///< learned positions, resampled and in merge-block order, in the table's dtype
  RopeTable rope;                   ///< float32 [N, head size]
  std::vector<int64_t> frame_lens;  ///< rows of each frame, which attend to each other only
};

/// Builds VisionRows; images with equal grids share the work. Differentiable in `pos_embed`.
/// @param pos_embed  [num_position_embeddings, D]
VisionRows make_vision_rows(const std::vector<GridThw>& grid_thw, const VisionDescription& vision, const at::Tensor& pos_embed);

/// Row and column of each patch of one frame in merge-block order: [h·w, 2] int64, on CPU.
at::Tensor block_order_coordinates(int64_t height, int64_t width, int64_t merge);

}  // namespace rematch
