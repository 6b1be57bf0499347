#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "base/flow/rollout.h"
#include "engine/rollout/hf_engine.h"
#include "model/model.h"

namespace rematch {

/// A batch of prompts, padded on the left to the length of the longest. Shapes: B prompts, P
/// columns, M visual tokens of all prompts.
struct PaddedBatch {
  /// int64, model's device; 0 at padding
  at::Tensor token_ids_BP;
  /// int64, CPU; 0 at padding
  at::Tensor positions_3BP;
  std::vector<int64_t> paddings;  ///< B
  /// B, mRoPE position of the first generated token, the same on all three axes
  std::vector<int64_t> next_positions;
  /// flat indices into B·P of the image pads; undefined without images
  at::Tensor visual_idx_M;
  VisionFeatures vision;  ///< rows in the order of visual_idx_M

  int64_t num_columns() const { return token_ids_BP.size(1); }
};

/// Pads prompts and runs the vision tower once for their images.
/// @throws UserError (data) when an image's pixels disagree with its reference
PaddedBatch pad_prompts(std::span<const Prompt> prompts, const Model& model,
                        const PixelGetter& pixels);

/// Checks that ids are in the vocabulary and that there are as many image pads as the images' grids
/// need.
/// @throws UserError (data) naming the sample
void check_prompt(const Prompt& prompt, const ModelDescription& model);

/// The prompt as input of the model's position ids.
RowInput prompt_row(const Prompt& prompt);

/// Pixels of an image of a prompt.
/// @throws UserError (data) when they disagree with the reference
std::shared_ptr<const Patches> load_patches(const Prompt& prompt, const ImageRef& image,
                                            const PixelGetter& pixels);

}  // namespace rematch
