#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <memory>

#include "flow/segment.h"
#include "model/feature_cache.h"
#include "model/model.h"
#include "vision/patches.h"

namespace rematch {

/// Returns the pixels of an image of a prompt, e.g. PixelStore::get.
using PixelGetter = std::function<std::shared_ptr<const Patches>(const ImageRef&)>;

/// A packed row as the model's input.
struct RowBatch {
  RowInput input;
  VisionInput images;  ///< of all segments, in order; empty for text only
};

/// Pixels of several images, [patches, patch width].
at::Tensor joined_pixels(const std::vector<std::shared_ptr<const Patches>>& patches);

/// Turns a packed row into tensors of the host; pixels come from `pixels`. The model moves to its
/// device what it reads.
/// @throws UserError whatever `pixels` throws
RowBatch make_row(const PackedRow& row, const PixelGetter& pixels);

/// Final-normed hidden states [T, H] of a packed row: vision tower, then decoder. Differentiable.
/// @param kept  features of rows that may recur; null = computed every time
at::Tensor forward_row(const Model& model, const RowBatch& batch, FeatureCache* kept = nullptr);

}  // namespace rematch
