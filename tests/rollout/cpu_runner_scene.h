#pragma once
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/rollout/native/step.h"
#include "model/model.h"

namespace rematch::test {

/// A prompt with its positions and image features: everything steps are made of.
struct StepPrompt {
  StepPrompt(const Model& model, int64_t num_text, GridThw grid, int seed) {
    const at::NoGradGuard no_grad;
    const ModelDescription& config = model.description();
    at::manual_seed(seed);
    const auto text = [&] { return at::randint(0, 100, {}, at::kLong).item<int64_t>(); };
    for (int64_t i = 0; i < num_text; ++i) row.token_ids.push_back(text());
    if (grid[0] > 0) {
      const int64_t patches = grid[0] * grid[1] * grid[2], merge = config.vision.spatial_merge_size;
      const std::vector<int64_t> pads(static_cast<size_t>(patches / (merge * merge)),
                                      config.image_token_id);
      row.token_ids.insert(row.token_ids.begin() + num_text / 2, pads.begin(), pads.end());
      row.grids = {{grid}};
      images.grid_thw = {grid};
      images.pixel_values_NC =
          at::randn({patches, 3 * config.vision.temporal_patch_size * config.vision.patch_size *
                                  config.vision.patch_size});
      features = model.encode_images(images);
      features.embeds_MH = features.embeds_MH.to(at::kFloat).contiguous();
      for (at::Tensor& deepstack : features.deepstack_MH)
        deepstack = deepstack.to(at::kFloat).contiguous();
    }
    row.segment_lens = {length()};
    positions_3T = model.positions_3T(row);
    int64_t next = 0;
    for (const int64_t id : row.token_ids)
      visual.push_back(id == config.image_token_id ? next++ : -1);
  }

  int64_t length() const { return static_cast<int64_t>(row.token_ids.size()); }

  RowInput row;
  VisionInput images;
  VisionFeatures features;
  at::Tensor positions_3T;
  std::vector<int64_t> visual;  ///< which feature row a token takes; -1 = none
};

/// One share of a step: the next rows of a prompt.
struct StepShare {
  const StepPrompt* prompt = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  std::span<const int32_t> block_table;
  int64_t num_logits = 1;
  int32_t state = 0;  ///< for models with recurrent states
};

/// Side by side, in order.
inline Step make_step(const std::vector<StepShare>& shares) {
  Step step;
  int64_t num_rows = 0;
  for (const StepShare& share : shares) num_rows += share.end - share.begin;
  step.positions_3T.resize(static_cast<size_t>(3 * num_rows));
  for (const StepShare& share : shares) {
    const auto first_row = static_cast<int64_t>(step.token_ids.size());
    step.sequences.push_back({first_row, share.end - share.begin, share.begin, share.block_table,
                              share.num_logits, share.state});
    for (int64_t t = share.begin; t < share.end; ++t) {
      const auto row = static_cast<int64_t>(step.token_ids.size());
      for (int64_t axis = 0; axis < 3; ++axis) {
        step.positions_3T[static_cast<size_t>(axis * num_rows + row)] =
            share.prompt->positions_3T[axis][t].item<int64_t>();
      }
      step.token_ids.push_back(
          static_cast<int32_t>(share.prompt->row.token_ids[static_cast<size_t>(t)]));
      const int64_t feature = share.prompt->visual[static_cast<size_t>(t)];
      if (feature < 0) continue;
      const int64_t width = share.prompt->features.embeds_MH.size(1);
      VisualRow visual{
          .row = row,
          .embed_H = share.prompt->features.embeds_MH.const_data_ptr<float>() + feature * width,
          .deepstack_H = {},
          .image = &share.prompt->features,
          .pad_idx = feature};
      for (const at::Tensor& deepstack : share.prompt->features.deepstack_MH) {
        visual.deepstack_H.push_back(deepstack.const_data_ptr<float>() + feature * width);
      }
      step.visual_rows.push_back(std::move(visual));
    }
  }
  return step;
}

using Logits = std::vector<float>;

/// Logits of one prompt taken alone in chunks, by position of the last token of a chunk.
inline std::map<int64_t, Logits> run_alone(StepRunner& runner, const StepPrompt& prompt,
                                           int64_t chunk, int64_t block_len) {
  const int64_t num_blocks = (prompt.length() + block_len - 1) / block_len;
  runner.reserve({num_blocks, block_len, /*num_states=*/1}, std::max(chunk, int64_t{1}));
  std::vector<int32_t> table(static_cast<size_t>(num_blocks));
  std::iota(table.rbegin(), table.rend(), 0);  // backwards: any order will do
  std::map<int64_t, Logits> logits;
  for (int64_t begin = 0; begin < prompt.length(); begin += chunk) {
    const int64_t end = std::min(begin + chunk, prompt.length());
    const std::span<float> found = runner.forward(make_step({{&prompt, begin, end, table}}));
    logits[end - 1].assign(found.begin(), found.end());
  }
  return logits;
}

}  // namespace rematch::test
