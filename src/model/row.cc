#include "model/row.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rematch {

at::Tensor join_pixels(const std::vector<std::shared_ptr<const Patches>>& patches) {
  int64_t num_rows = 0;
  for (const auto& image : patches) num_rows += image->num_rows();
  const int64_t width = patches.front()->row_width;
  at::Tensor pixels = at::empty({num_rows, width}, at::TensorOptions().dtype(at::kFloat));
  float* cursor = pixels.data_ptr<float>();
  for (const auto& image : patches) {
    REMATCH_CHECK(image->row_width == width, fmt::format("{} and {}", image->row_width, width));
    cursor = std::copy(image->pixel_values.begin(), image->pixel_values.end(), cursor);
  }
  REMATCH_CHECK(cursor == pixels.data_ptr<float>() + pixels.numel());
  return pixels;
}

RowBatch make_row(const PackedRow& row, const PixelGetter& pixels) {
  RowBatch batch;
  std::vector<std::shared_ptr<const Patches>> patches;
  for (const auto& segment : row.segments) {
    batch.input.token_ids.insert(batch.input.token_ids.end(), segment->token_ids.begin(),
                                 segment->token_ids.end());
    batch.input.segment_lens.push_back(segment->encoded_len());
    std::vector<GridThw>& grids = batch.input.grids.emplace_back();
    for (const ImageRef& image : segment->images) {
      patches.push_back(pixels(image));
      grids.push_back(patches.back()->grid_thw);
      batch.images.grid_thw.push_back(patches.back()->grid_thw);
    }
  }
  if (!patches.empty()) batch.images.pixel_values_NC = join_pixels(patches);
  return batch;
}

at::Tensor forward_row(const Model& model, const RowBatch& batch, FeatureCache* cache) {
  return model.forward_TH(batch.input, cache != nullptr ? cache->features(model, batch.images)
                                                        : model.encode_images(batch.images));
}

}  // namespace rematch
