// Acceptance (c) of Qwen3.5: decoding from states gives what a pass over the whole sequence gives.
#include "engine/rollout/state_cache.h"

#include <gtest/gtest.h>

#include "engine/rollout/kv_cache.h"
#include "model/delta_layer.h"
#include "model/model.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr int64_t kNumColumns = 70, kNumNew = 9;

int64_t token_at(int64_t row, int64_t i) { return (row * 101 + i * i * 3 + i * 7) % 350; }

// Logits [T, V] of the sequence alone.
at::Tensor whole_logits(const Model& model, int64_t row, int64_t len) {
  RowInput input{.segment_lens = {len}, .grids = {}};
  for (int64_t i = 0; i < len; ++i) input.token_ids.push_back(token_at(row, i));
  return model.head_KV(model.forward_TH(input, {}));
}

at::Tensor positions(const std::vector<int64_t>& paddings, int64_t first, int64_t count) {
  const auto num_rows = static_cast<int64_t>(paddings.size());
  const at::Tensor found = at::zeros({num_rows, count}, at::kLong);
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = 0; i < count; ++i)
      found[row][i] = std::max<int64_t>(0, first + i - paddings[static_cast<size_t>(row)]);
  }
  return found.unsqueeze(0).expand({3, num_rows, count});
}

}  // namespace

TEST(StateCache, PrefillAndStepsOfALeftPaddedBatchEqualOnePass) {
  const at::NoGradGuard no_grad;
  const auto model = Model::load(test::source_path("tests/golden/model/delta_tied"), {});
  const TextDescription& text = model->description().text;
  // One prompt is shorter than the window of the convolution.
  std::vector<int64_t> paddings{0, kNumColumns - 2, 5}, rows{0, 1, 2};
  const at::TensorOptions options(at::kFloat);
  KvCache cache({text.num_attention_layers(), text.num_key_value_heads, text.head_dim}, paddings,
                kNumColumns + kNumNew, options);
  StateCache states({text.num_delta_layers(), text.delta()->conv_kernel, heads_of(*text.delta())},
                    cache.num_rows(), options);
  const auto run = [&](int64_t first, int64_t count) {
    const at::Tensor ids = at::zeros({static_cast<int64_t>(rows.size()), count}, at::kLong);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int64_t t = 0; t < count; ++t)
        ids[static_cast<int64_t>(i)][t] =
            token_at(rows[i], std::max<int64_t>(0, first + t - paddings[i]));
    }
    CachedAttention attention(cache, count, at::kFloat, at::kCPU, &states);
    const at::Tensor hidden =
        model->decode_TH(model->embed(ids), positions(paddings, first, count), attention, {}, {});
    cache.advance(count);
    return model->head_KV(hidden);
  };
  const auto compare = [&](const at::Tensor& logits, int64_t column) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t len = column + 1 - paddings[i];
      const at::Tensor wanted = whole_logits(*model, rows[i], len)[len - 1];
      EXPECT_LE((logits[static_cast<int64_t>(i)] - wanted).abs().max().item<double>(),
                1e-5 * wanted.abs().max().item<double>())
          << "row " << rows[i] << ", length " << len;
    }
  };
  compare(run(0, kNumColumns).select(1, kNumColumns - 1), kNumColumns - 1);
  for (int64_t t = 0; t < kNumNew; ++t) {
    if (t == 4) {  // a finished row leaves the batch
      cache.rebuild({0, 2}, cache.capacity());
      states.keep_rows({0, 2});
      rows = {0, 2};
      paddings = {0, 5};
    }
    compare(run(kNumColumns + t, 1).select(1, 0), kNumColumns + t);
  }
}

}  // namespace rematch
