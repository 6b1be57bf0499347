#include "engine/rollout/native/aten/states.h"

#include <algorithm>

#include "model/delta_layer.h"
#include "model/nn/short_conv.h"
#include "model/nn/upload.h"

namespace rematch {

AtenStates::AtenStates(const TextDescription& text, int64_t num_slots,
                       const at::TensorOptions& options)
    : num_layers_(text.num_delta_layers()),
      num_taps_(text.delta()->conv_kernel),
      device_(options.device()),
      cache_({num_layers_, num_taps_, heads_of(*text.delta())}, num_slots, options) {}

int64_t AtenStates::bytes(const TextDescription& text, int64_t value_bytes) {
  if (text.delta() == nullptr) return 0;
  return text.num_delta_layers() *
         (text.delta()->state_size() * static_cast<int64_t>(sizeof(float)) +
          text.delta()->window_size() * value_bytes);
}

void AtenStates::copy(int32_t from, int32_t to) {
  if (from == to) return;
  for (int64_t i = 0; i < num_layers_; ++i) {
    for (const at::Tensor& all : {cache_.window(i), cache_.states(i)})
      all.select(0, to).copy_(all.select(0, from));
  }
}

AtenStatePlan AtenStates::plan(const Step& step) const {
  const auto index = [this](const std::vector<int64_t>& values) {
    return upload_index(values, device_);
  };
  AtenStatePlan plan;
  std::vector<int64_t> rows, slots, empty, start_rows, start_slots, window_rows;
  std::vector<uint8_t> is_before;
  std::vector<AtenStatePlan::Next> continued;
  for (const StepSequence& sequence : step.sequences) {
    const int64_t first = sequence.first_row;
    if (sequence.num_rows == 1) {
      rows.push_back(first);
      slots.push_back(sequence.state);
      if (sequence.num_cached == 0) empty.push_back(sequence.state);
    } else if (sequence.num_cached > 0) {
      for (int64_t i = 0; i < sequence.num_rows; ++i)
        continued.push_back({index({first + i}), index({sequence.state})});
    } else {
      plan.start_lens.push_back(sequence.num_rows);
      start_slots.push_back(sequence.state);
      for (int64_t i = 0; i < sequence.num_rows; ++i) start_rows.push_back(first + i);
      for (int64_t i = sequence.num_rows - num_taps_ + 1; i < sequence.num_rows; ++i) {
        is_before.push_back(i < 0 ? 1 : 0);
        window_rows.push_back(first + std::max<int64_t>(i, 0));
      }
    }
  }
  if (!rows.empty()) plan.next.push_back({index(rows), index(slots)});
  plan.next.insert(plan.next.end(), continued.begin(), continued.end());
  if (!empty.empty()) plan.empty_slots = index(empty);
  if (start_slots.empty()) return plan;
  plan.chunks = std::make_shared<const ChunkPlan>(plan.start_lens, device_);
  plan.start_rows = index(start_rows);
  plan.start_slots = index(start_slots);
  std::vector<int64_t> by_chunks;
  for (const int64_t segment : plan.chunks->segment_order())
    by_chunks.push_back(start_slots[static_cast<size_t>(segment)]);
  plan.start_slots_by_chunks = index(by_chunks);
  plan.window_rows = index(window_rows);
  plan.window_before =
      at::tensor(is_before, at::kByte).to(at::kBool).view({-1, num_taps_ - 1, 1}).to(device_);
  return plan;
}

at::Tensor AtenStates::mix(int64_t layer_idx, const DeltaTokens& tokens,
                           const AtenStatePlan& plan) {
  at::Tensor out =
      at::empty({tokens.qkv.size(0), tokens.heads.num_value_heads, tokens.heads.value_dim},
                tokens.qkv.options());
  if (plan.empty_slots.defined()) {
    for (const at::Tensor& all : {cache_.window(layer_idx), cache_.states(layer_idx)})
      at::Tensor(all).index_fill_(0, plan.empty_slots, 0);
  }
  if (plan.chunks != nullptr) start(layer_idx, tokens, plan, out);
  for (const AtenStatePlan::Next& next : plan.next) step(layer_idx, tokens, next, out);
  return out;
}

void AtenStates::start(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan& plan,
                       at::Tensor& out) {
  const auto rows = [&](const at::Tensor& x) { return x.index_select(0, plan.start_rows); };
  at::Tensor final_states;
  out.index_copy_(0, plan.start_rows,
                  chunked_delta_rule(
                      {.qkv_TC = short_conv(rows(tokens.qkv), tokens.conv_weight, plan.start_lens),
                       .g_TN = rows(tokens.g),
                       .beta_TN = rows(tokens.beta)},
                      tokens.heads, plan.chunks, &final_states));
  cache_.states(layer_idx).index_copy_(0, plan.start_slots_by_chunks, final_states);
  const at::Tensor windows = tokens.qkv.index_select(0, plan.window_rows)
                                 .view({-1, num_taps_ - 1, tokens.qkv.size(1)})
                                 .masked_fill(plan.window_before, 0);
  cache_.window(layer_idx).index_copy_(0, plan.start_slots, windows);
}

void AtenStates::step(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan::Next& next,
                      at::Tensor& out) {
  const auto rows = [&](const at::Tensor& x) { return x.index_select(0, next.rows_S); };
  at::Tensor windows = cache_.window(layer_idx), states = cache_.states(layer_idx);
  const at::Tensor window = windows.index_select(0, next.slots_S),
                   state = states.index_select(0, next.slots_S);
  out.index_copy_(
      0, next.rows_S,
      delta_rule_step({.qkv_TC = short_conv_step(rows(tokens.qkv), tokens.conv_weight, window),
                       .g_TN = rows(tokens.g),
                       .beta_TN = rows(tokens.beta)},
                      tokens.heads, state));
  windows.index_copy_(0, next.slots_S, window);
  states.index_copy_(0, next.slots_S, state);
}

}  // namespace rematch
