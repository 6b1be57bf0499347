#include "engine/rollout/native/aten/states.h"

#include <utility>

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

std::function<void()> AtenStates::remember(const at::Tensor& slots) {
  std::vector<std::pair<at::Tensor, at::Tensor>> kept;
  for (int64_t i = 0; i < num_layers_; ++i) {
    for (const at::Tensor& all : {cache_.window(i), cache_.states(i)})
      kept.emplace_back(all, all.index_select(0, slots));
  }
  return [kept, slots] {
    for (const auto& [all, values] : kept) at::Tensor(all).index_copy_(0, slots, values);
  };
}

AtenStatePlan AtenStates::plan(const Step& step) const {
  const auto index = [this](const std::vector<int64_t>& values) {
    return upload_index(values, device_);
  };
  AtenStatePlan plan;
  std::vector<int64_t> rows, slots, empty;
  std::vector<const StepSequence*> several;
  for (const StepSequence& sequence : step.sequences) {
    if (sequence.num_cached == 0) empty.push_back(sequence.state);
    if (sequence.num_rows > 1) {
      several.push_back(&sequence);
    } else {
      rows.push_back(sequence.first_row);
      slots.push_back(sequence.state);
    }
  }
  if (!rows.empty()) plan.next = {index(rows), index(slots)};
  if (!empty.empty()) plan.empty_slots = index(empty);
  if (!several.empty()) plan.several = plan_several(several);
  return plan;
}

AtenStatePlan::Several AtenStates::plan_several(
    const std::vector<const StepSequence*>& sequences) const {
  const auto index = [this](const std::vector<int64_t>& values) {
    return upload_index(values, device_);
  };
  const int64_t window = num_taps_ - 1, num_windows = std::ssize(sequences) * window;
  std::vector<int64_t> rows, slots, lens, inputs, new_windows;
  for (const StepSequence* sequence : sequences) {
    const int64_t before = std::ssize(slots) * window;
    for (int64_t i = 0; i < window; ++i) inputs.push_back(before + i);
    for (int64_t i = 0; i < sequence->num_rows; ++i) {
      rows.push_back(sequence->first_row + i);
      inputs.push_back(num_windows + rows.back());
    }
    new_windows.insert(new_windows.end(), inputs.end() - window, inputs.end());
    slots.push_back(sequence->state);
    lens.push_back(sequence->num_rows);
  }
  AtenStatePlan::Several several{.rows = index(rows),
                                 .slots = index(slots),
                                 .slots_by_chunks = {},
                                 .chunks = std::make_shared<const ChunkPlan>(lens, device_),
                                 .conv_inputs = index(inputs),
                                 .new_windows = index(new_windows),
                                 .conv_slots = upload(spaced_rows(lens, num_taps_), device_)};
  std::vector<int64_t> by_chunks;
  for (const int64_t segment : several.chunks->segment_order()) by_chunks.push_back(slots[segment]);
  several.slots_by_chunks = index(by_chunks);
  return several;
}

at::Tensor AtenStates::mix(int64_t layer_idx, const DeltaTokens& tokens,
                           const AtenStatePlan& plan) {
  if (plan.empty_slots.defined()) {
    for (const at::Tensor& all : {cache_.window(layer_idx), cache_.states(layer_idx)})
      at::Tensor(all).index_fill_(0, plan.empty_slots, 0);
  }
  if (!plan.next.rows_S.defined() && !plan.several) return step(layer_idx, tokens, plan.next);
  at::Tensor out =
      at::empty({tokens.qkv.size(0), tokens.heads.num_value_heads, tokens.heads.value_dim},
                tokens.qkv.options());
  if (plan.several) run(layer_idx, tokens, *plan.several, out);
  if (plan.next.slots_S.defined())
    out.index_copy_(0, plan.next.rows_S, step(layer_idx, tokens, plan.next));
  return out;
}

void AtenStates::run(int64_t layer_idx, const DeltaTokens& tokens,
                     const AtenStatePlan::Several& several, at::Tensor& out) {
  at::Tensor windows = cache_.window(layer_idx), states = cache_.states(layer_idx);
  const auto rows = [&](const at::Tensor& x) { return x.index_select(0, several.rows); };
  const at::Tensor inputs =
      at::cat({windows.index_select(0, several.slots).flatten(0, 1), tokens.qkv});
  at::Tensor final_states;
  out.index_copy_(
      0, several.rows,
      chunked_delta_rule({.qkv_TC = short_conv_in_slots(inputs.index_select(0, several.conv_inputs),
                                                        tokens.conv_weight, several.conv_slots),
                          .g_TN = rows(tokens.g),
                          .beta_TN = rows(tokens.beta)},
                         tokens.heads, several.chunks, &final_states,
                         states.index_select(0, several.slots_by_chunks)));
  states.index_copy_(0, several.slots_by_chunks, final_states);
  windows.index_copy_(
      0, several.slots,
      inputs.index_select(0, several.new_windows).view({-1, num_taps_ - 1, tokens.qkv.size(1)}));
}

at::Tensor AtenStates::step(int64_t layer_idx, const DeltaTokens& tokens,
                            const AtenStatePlan::Next& next) {
  const auto rows = [&](const at::Tensor& x) {
    return next.rows_S.defined() ? x.index_select(0, next.rows_S) : x;
  };
  at::Tensor windows = cache_.window(layer_idx), states = cache_.states(layer_idx);
  const at::Tensor window = windows.index_select(0, next.slots_S),
                   state = states.index_select(0, next.slots_S);
  const at::Tensor mixed =
      delta_rule_step({.qkv_TC = short_conv_step(rows(tokens.qkv), tokens.conv_weight, window),
                       .g_TN = rows(tokens.g),
                       .beta_TN = rows(tokens.beta)},
                      tokens.heads, state);
  windows.index_copy_(0, next.slots_S, window);
  states.index_copy_(0, next.slots_S, state);
  return mixed;
}

}  // namespace rematch
