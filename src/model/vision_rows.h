#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "flow/grid.h"
#include "model/families/description.h"
#include "nn/rope.h"

namespace rematch {

/// Values that depend on the grids alone, shared by all blocks of the vision tower.
struct VisionRows {
  /// learned positions, resampled and in the rows' order, in the table's dtype; undefined = none
  at::Tensor position_ND;
  RopeTable rope;                    ///< float32 [N, head size]
  std::vector<int64_t> frame_lens;   ///< rows of each frame, which attend to each other only
  std::vector<int64_t> window_lens;  ///< the same in blocks with windows; empty without them
  /// Rows are in merge-block order, or with windows in that of their windows: row i is the
  /// processor's row order_N[i], visual token k of the processor is the rows' token token_M[k].
  /// int64; undefined without windows.
  at::Tensor order_N, token_M;
};

/// Builds VisionRows; images with equal grids share the work. Differentiable in `pos_embed`.
/// @param pos_embed  [num_position_embeddings, D]; undefined when the tower has none
VisionRows make_vision_rows(const std::vector<GridThw>& grid_thw, const VisionDescription& vision,
                            const at::Tensor& pos_embed, at::Device device);

/// Row and column of each patch of one frame in merge-block order: [h·w, 2] int64, on CPU.
at::Tensor block_order_coordinates(int64_t height, int64_t width, int64_t merge);

}  // namespace rematch
