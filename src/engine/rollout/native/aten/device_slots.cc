#include "engine/rollout/native/aten/device_slots.h"

#include <algorithm>
#include <limits>

#include "model/nn/upload.h"

namespace rematch {
namespace {

// Lengths and block tables, padded to the shape.
struct Tables {
  Tables(const std::vector<const StepSequence*>& decodes, const SlotShape& shape)
      : num_blocks((shape.num_tokens + shape.block_len - 1) / shape.block_len),
        lens(static_cast<size_t>(shape.num_rows), 1),
        blocks(static_cast<size_t>(shape.num_rows * num_blocks), 0) {
    for (size_t s = 0; s < decodes.size(); ++s) {
      lens[s] = decodes[s]->num_cached + 1;
      const auto& table = decodes[s]->block_table;
      std::copy_n(table.begin(), std::min(table.size(), static_cast<size_t>(num_blocks)),
                  blocks.begin() + s * num_blocks);
    }
  }

  int64_t num_blocks;
  std::vector<int64_t> lens, blocks;
};

}  // namespace

PageTable page_table(const std::vector<const StepSequence*>& decodes, const SlotShape& shape,
                     const at::Device& device) {
  const Tables tables(decodes, shape);
  const auto ints = [&](const std::vector<int64_t>& values) {
    return upload(at::tensor(values, at::kInt), device);
  };
  return {.pages_SB = ints(tables.blocks).view({shape.num_rows, tables.num_blocks}),
          .lens_S = ints(tables.lens),
          .begins = SegmentBounds::from_lens(tables.lens, device).begins,
          .max_len = shape.num_tokens};
}

std::pair<at::Tensor, at::Tensor> device_slots(const std::vector<const StepSequence*>& decodes,
                                               const SlotShape& shape,
                                               const at::TensorOptions& options) {
  const Tables tables(decodes, shape);
  const at::Device device = options.device();
  const auto longs = at::TensorOptions(device).dtype(at::kLong);
  const at::Tensor first_slots =
      upload_index(tables.blocks, device).view({shape.num_rows, tables.num_blocks, 1}) *
      shape.block_len;
  const at::Tensor slots_SL = (first_slots + at::arange(shape.block_len, longs))
                                  .flatten(1)
                                  .narrow(1, 0, shape.num_tokens)
                                  .contiguous();
  const at::Tensor hidden =
      at::arange(shape.num_tokens, longs) >= upload_index(tables.lens, device).unsqueeze(1);
  const at::Tensor mask = at::zeros({shape.num_rows, shape.num_tokens}, options)
                              .masked_fill_(hidden, -std::numeric_limits<float>::infinity());
  return {slots_SL, mask.view({shape.num_rows, 1, 1, shape.num_tokens})};
}

}  // namespace rematch
