#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "base/flow/segment.h"
#include "model/feature_cache.h"
#include "model/model.h"
#include "model/vision/patches.h"

namespace rematch {

/// Returns the pixels of an image of a prompt, e.g. PixelStore::get.
using PixelGetter = std::function<std::shared_ptr<const Patches>(const ImageRef&)>;

/// A packed row as the model's input.
struct RowBatch {
  RowInput input;
  VisionInput images;  ///< of all segments, in order; empty for text only
};

/// One image as the tower's input. The tensors share the memory of `patches`, which must outlive
/// them.
VisionInput view_image(const Patches& patches);
/// Several images, none of them shared.
VisionInput join_images(const std::vector<std::shared_ptr<const Patches>>& patches);

/// Converts a packed row to tensors on the host; the model uploads them to its device.
/// @throws exceptions of `pixels`
RowBatch make_row(const PackedRow& row, const PixelGetter& pixels);

/// Hidden states [T, H] of a packed row after the final norm: vision tower, then decoder.
/// Differentiable.
/// @param cache  for rows that may recur; null = features are computed every time
at::Tensor forward_row(const Model& model, const RowBatch& batch, FeatureCache* cache = nullptr);

}  // namespace rematch
