#include "model/pixel_levels.h"

namespace rematch {

at::Tensor values_of_levels(const at::Tensor& levels_NC, const at::Tensor& values_C256,
                            int64_t num_frames) {
  const int64_t num_rows = levels_NC.size(0), num_channels = values_C256.size(0),
                frame_size = levels_NC.size(1) / num_channels;
  // int32 suffices for an index, and takes half the memory of int64.
  const at::Tensor first_of_channel =
      at::arange(0, values_C256.numel(), values_C256.size(1), levels_NC.options().dtype(at::kInt));
  const at::Tensor index =
      levels_NC.view({num_rows, num_channels, 1, frame_size}) + first_of_channel.view({-1, 1, 1});
  return values_C256.flatten()
      .index_select(0, index.flatten())
      .view(index.sizes())
      .expand({-1, -1, num_frames, -1})
      .reshape({num_rows, -1});
}

}  // namespace rematch
