#include "engine/rollout/state_cache.h"

#include <algorithm>
#include <memory>

#include "model/nn/short_conv.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

constexpr int64_t kStateRowDim = 1;

}  // namespace

StateCache::StateCache(const Shape& shape, int64_t num_rows, const at::TensorOptions& options)
    : windows_(at::zeros(
          {shape.num_layers, num_rows, shape.num_taps - 1, shape.heads.num_channels()}, options)),
      states_(at::zeros({shape.num_layers, num_rows, shape.heads.num_value_heads,
                         shape.heads.key_dim, shape.heads.value_dim},
                        options.dtype(at::kFloat))) {}

void StateCache::keep_rows(const std::vector<int64_t>& row_idx) {
  const at::Tensor rows = upload_index(row_idx, states_.device());
  windows_ = windows_.index_select(kStateRowDim, rows);
  states_ = states_.index_select(kStateRowDim, rows);
}

at::Tensor prefill_states(StateCache& cache, int64_t layer_idx, const DeltaTokens& tokens,
                          const std::vector<int64_t>& paddings) {
  const int64_t num_rows = tokens.qkv.size(0), num_columns = tokens.qkv.size(1);
  const at::Tensor window = cache.window(layer_idx), states = cache.states(layer_idx);
  std::vector<int64_t> lens, columns;
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t padding = paddings[row], len = num_columns - padding;
    lens.push_back(len);
    for (int64_t column = padding; column < num_columns; ++column)
      columns.push_back(row * num_columns + column);
    const int64_t num_seen = std::min(len, window.size(1));
    window.select(0, row)
        .narrow(0, window.size(1) - num_seen, num_seen)
        .copy_(tokens.qkv.select(0, row).narrow(0, num_columns - num_seen, num_seen));
  }
  const at::Tensor index = upload_index(columns, tokens.qkv.device());
  const auto real = [&](const at::Tensor& x) { return x.flatten(0, 1).index_select(0, index); };
  const auto plan = std::make_shared<const ChunkPlan>(lens, tokens.qkv.device());
  at::Tensor final_states;
  const at::Tensor mixed =
      chunked_delta_rule({.qkv_TC = short_conv(real(tokens.qkv), tokens.conv_weight, lens),
                          .g_TN = real(tokens.g),
                          .beta_TN = real(tokens.beta)},
                         tokens.heads, plan, &final_states);
  states.index_copy_(0, upload_index(plan->segment_order(), states.device()), final_states);
  std::vector<int64_t> sizes = mixed.sizes().vec();
  sizes[0] = num_rows * num_columns;
  return at::zeros(sizes, mixed.options())
      .index_copy_(0, index, mixed)
      .unflatten(0, {num_rows, num_columns});
}

at::Tensor step_states(StateCache& cache, int64_t layer_idx, const DeltaTokens& tokens) {
  std::vector<at::Tensor> outputs;
  for (int64_t t = 0; t < tokens.qkv.size(1); ++t) {
    outputs.push_back(delta_rule_step(
        {.qkv_TC =
             short_conv_step(tokens.qkv.select(1, t), tokens.conv_weight, cache.window(layer_idx)),
         .g_TN = tokens.g.select(1, t),
         .beta_TN = tokens.beta.select(1, t)},
        tokens.heads, cache.states(layer_idx)));
  }
  return at::stack(outputs, 1);
}

}  // namespace rematch
