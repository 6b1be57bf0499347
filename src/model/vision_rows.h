#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "base/flow/grid.h"
#include "model/families/description.h"
#include "model/nn/rope.h"

namespace rematch {

/// Values that depend only on the grids, shared by all blocks of the vision tower.
struct VisionRows {
  /// resampled learned positions in the order of the rows, in the table's dtype; undefined = none
  at::Tensor position_ND;
  RopeTable rope;                    ///< float32 [N, head size]
  std::vector<int64_t> frame_lens;   ///< rows of each frame; attention stays inside a frame
  std::vector<int64_t> window_lens;  ///< rows of each attention window; empty without windows
  /// Rows are in merge-block order, or grouped by window if there are windows: then row i is the
  /// processor's row order_N[i], and the processor's visual token k is token token_M[k] here.
  /// int64; undefined without windows.
  at::Tensor order_N, token_M;
};

/// Builds VisionRows; images with equal grids share the work. Differentiable in `pos_embed`.
/// @param pos_embed  [num_position_embeddings, D]; undefined if the tower has none
VisionRows make_vision_rows(const std::vector<GridThw>& grid_thw, const VisionDescription& vision,
                            const at::Tensor& pos_embed, at::Device device);

/// Row and column of each patch of one frame in merge-block order: [h·w, 2] int64, on CPU.
at::Tensor block_order_coordinates(int64_t height, int64_t width, int64_t merge);

}  // namespace rematch
