#include "engine/rollout/padded_batch.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

UserError bad_prompt(const Prompt& prompt, const std::string& error, const std::string& what,
                     const std::string& fix) {
  return data_error({.error = error,
                     .where = sample_name(prompt.sample_id, prompt.where),
                     .what = what,
                     .fix = fix});
}

VisionInput gather_pixels(std::span<const Prompt> prompts, const PixelGetter& pixels) {
  std::vector<std::shared_ptr<const Patches>> patches;
  for (const Prompt& prompt : prompts) {
    for (const ImageRef& image : prompt.images)
      patches.push_back(load_patches(prompt, image, pixels));
  }
  return join_images(patches);
}

}  // namespace

RowInput prompt_row(const Prompt& prompt) {
  RowInput row{.token_ids = {prompt.token_ids.begin(), prompt.token_ids.end()},
               .segment_lens = {std::ssize(prompt.token_ids)},
               .grids = {{}}};
  for (const ImageRef& image : prompt.images) row.grids.back().push_back(image.grid_thw);
  return row;
}

std::shared_ptr<const Patches> load_patches(const Prompt& prompt, const ImageRef& image,
                                            const PixelGetter& pixels) {
  throw_if_interrupted();
  std::shared_ptr<const Patches> patches = pixels(image);
  if (patches->grid_thw == image.grid_thw) return patches;
  throw bad_prompt(
      prompt, "an image's size differs from that of its prompt",
      fmt::format("{}: {}x{} patches, the prompt has {}x{}", image.path, patches->grid_thw[1],
                  patches->grid_thw[2], image.grid_thw[1], image.grid_thw[2]),
      "do not change image files during a run");
}

void check_prompt(const Prompt& prompt, const ModelDescription& model) {
  if (prompt.token_ids.empty())
    throw bad_prompt(prompt, "a prompt is empty", "no token ids", "pass at least one token");
  for (size_t i = 0; i < prompt.token_ids.size(); ++i) {
    const TokenId id = prompt.token_ids[i];
    if (id >= 0 && id < model.text.vocab_size) continue;
    throw bad_prompt(
        prompt, "a prompt has a token outside the model's vocabulary",
        fmt::format("id {} at position {}, vocab_size {}", id, i, model.text.vocab_size),
        "use the tokenizer of this checkpoint");
  }
  int64_t num_wanted = 0;
  for (const ImageRef& image : prompt.images) num_wanted += model.vision.num_tokens(image.grid_thw);
  const int64_t num_pads =
      std::ranges::count(prompt.token_ids, static_cast<int>(model.image_token_id));
  if (num_pads == num_wanted) return;
  throw bad_prompt(
      prompt, "image pads and images of a prompt do not match",
      fmt::format("{} pads, {} images that need {}", num_pads, prompt.images.size(), num_wanted),
      "pass one image per image placeholder of the messages");
}

PaddedBatch pad_prompts(std::span<const Prompt> prompts, const Model& model,
                        const PixelGetter& pixels) {
  const auto num_rows = std::ssize(prompts);
  int64_t num_columns = 0;
  for (const Prompt& prompt : prompts)
    num_columns = std::max(num_columns, std::ssize(prompt.token_ids));

  PaddedBatch batch;
  at::Tensor token_ids = at::zeros({num_rows, num_columns}, at::kLong);
  batch.positions_3BP = at::zeros({3, num_rows, num_columns}, at::kLong);
  std::vector<int64_t> visual_idx;
  for (int64_t row = 0; row < num_rows; ++row) {
    const Prompt& prompt = prompts[row];
    const auto len = std::ssize(prompt.token_ids);
    const int64_t padding = num_columns - len;
    batch.paddings.push_back(padding);
    int64_t* const ids = token_ids.data_ptr<int64_t>() + row * num_columns + padding;
    std::ranges::copy(prompt.token_ids, ids);
    for (int64_t i = 0; i < len; ++i) {
      if (ids[i] == model.description().image_token_id)
        visual_idx.push_back(row * num_columns + padding + i);
    }
    const at::Tensor positions_3T = model.positions_3T(prompt_row(prompt));
    batch.positions_3BP.select(1, row).narrow(1, padding, len).copy_(positions_3T);
    batch.next_positions.push_back(positions_3T.max().item<int64_t>() + 1);
  }
  batch.token_ids_BP = upload(token_ids, model.device());
  if (!visual_idx.empty()) {
    batch.visual_idx_M = upload_index(visual_idx, model.device());
    batch.vision = model.encode_images(gather_pixels(prompts, pixels));
  }
  return batch;
}

}  // namespace rematch
