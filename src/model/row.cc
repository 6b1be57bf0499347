#include "model/row.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rematch {

VisionInput view_image(const Patches& patches) {
  const int64_t num_rows = patches.num_rows();
  // from_blob takes a mutable pointer, but the tower only reads.
  const auto view = [&](const auto& values, at::ScalarType dtype) {
    const auto size = std::ssize(values);
    REMATCH_CHECK(num_rows > 0 && size % num_rows == 0, fmt::format("{} of {}", size, num_rows));
    return at::from_blob(const_cast<void*>(static_cast<const void*>(values.data())),
                         {num_rows, size / num_rows}, dtype);
  };
  if (patches.level_values == nullptr)
    return {.pixel_values_NC = view(patches.pixel_values, at::kFloat),
            .grid_thw = {patches.grid_thw}};
  float* const values = const_cast<float*>(patches.level_values->front().data());
  return {.pixel_values_NC = view(patches.levels, at::kByte),
          .grid_thw = {patches.grid_thw},
          .level_values_C256 = at::from_blob(values, {kNumChannels, 256}, at::kFloat)};
}

VisionInput join_images(const std::vector<std::shared_ptr<const Patches>>& patches) {
  VisionInput joined;
  std::vector<at::Tensor> pixels;
  for (const auto& image : patches) {
    REMATCH_CHECK(image->row_width == patches.front()->row_width,
                  fmt::format("{} and {}", image->row_width, patches.front()->row_width));
    VisionInput one = view_image(*image);
    pixels.push_back(one.pixel_values_NC);
    joined.grid_thw.push_back(image->grid_thw);
    if (!joined.level_values_C256.defined() && one.level_values_C256.defined())
      joined.level_values_C256 = one.level_values_C256.clone();
  }
  if (!pixels.empty()) joined.pixel_values_NC = at::cat(pixels);
  return joined;
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
    }
  }
  batch.images = join_images(patches);
  return batch;
}

at::Tensor forward_row(const Model& model, const RowBatch& batch, FeatureCache* cache) {
  return model.forward_TH(batch.input, cache != nullptr ? cache->features(model, batch.images)
                                                        : model.encode_images(batch.images));
}

}  // namespace rematch
