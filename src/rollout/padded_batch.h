#pragma once
#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "rollout/hf_engine.h"
#include "flow/rollout.h"
#include "model/model.h"

namespace rematch {

/// A batch of prompts, each padded on the left to the longest. Shapes: B prompts, P columns, M
/// visual tokens of all prompts.
struct PaddedBatch {
  /// int64, model's device; padding is id 0, which only the mask distinguishes
  at::Tensor token_ids_BP;
  /// int64, CPU; from each row's own unpadded ids, 0 at padding
  at::Tensor positions_3BP;
  std::vector<int64_t> paddings;  ///< B
  /// B, mRoPE position of the first generated token, all three rows alike
  std::vector<int64_t> next_positions;
  /// flat indices into B·P of the image pads; undefined without images
  at::Tensor visual_idx_M;
  VisionFeatures vision;  ///< rows in the order of visual_idx_M

  int64_t num_columns() const { return token_ids_BP.size(1); }
};

/// Lays out prompts and runs the vision tower once for their images.
/// @throws UserError (data) when an image's pixels disagree with its reference
PaddedBatch pad_prompts(std::span<const Prompt> prompts, const Model& model,
                        const PixelGetter& pixels);

/// Checks that ids are in the vocabulary and that there are as many image pads as the images' grids
/// need.
/// @throws UserError (data) naming the sample
void check_prompt(const Prompt& prompt, const ModelDescription& model);

}  // namespace rematch
