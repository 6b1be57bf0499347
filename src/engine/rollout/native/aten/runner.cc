#include "engine/rollout/native/aten/runner.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/rollout/device_sampler.h"
#include "engine/rollout/native/aten/decode_graphs.h"
#include "engine/rollout/native/aten/device_slots.h"
#include "engine/rollout/native/aten/paged_attention.h"
#include "engine/rollout/native/aten/states.h"
#include "model/nn/attention.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

// Shapes as in paged_attention.h; H hidden, V vocabulary.

at::Tensor additive_mask(const at::Tensor& visible, const at::TensorOptions& options) {
  const at::Tensor mask =
      at::zeros(visible.sizes(), at::kFloat)
          .masked_fill(visible.logical_not(), -std::numeric_limits<float>::infinity());
  return upload(mask.to(options.dtype()), options.device());
}

class AtenRunner : public StepRunner {
 public:
  AtenRunner(std::shared_ptr<const Model> model, StepGraphMaker graphs,
             const GenerateOptions& sampling)
      : model_(std::move(model)),
        sampler_(sampling),
        has_pages_(has_paged_attention(attention_case())),
        graphs_(
            std::move(graphs),
            [this](const DecodeInputs& inputs) { return compute_decode(inputs); },
            has_states()
                ? [this](const DecodeInputs& inputs) { return states_->remember(inputs.states_S); }
                : DecodeGraphs::Remember()) {}

  int64_t block_len(int64_t wanted) const override { return has_pages_ ? kPageTokens : wanted; }

  int64_t block_bytes(int64_t block_len) const override {
    const TextDescription& text = model_->description().text;
    return text.num_attention_layers() * 2 * block_len * text.num_key_value_heads * text.head_dim *
           static_cast<int64_t>(c10::elementSize(model_->dtype()));
  }

  int64_t state_bytes() const override {
    return AtenStates::bytes(model_->description().text,
                             static_cast<int64_t>(c10::elementSize(model_->dtype())));
  }

  void reserve(const CacheShape& shape, int64_t) override {
    const TextDescription& text = model_->description().text;
    release();
    shape_ = shape;
    // One spare slot, for rows that pad a step to the size of a graph.
    // Zeros: a slot that was never written is read, and its value must be finite.
    cache_ = at::zeros({text.num_attention_layers(), 2, shape.num_blocks * shape.block_len + 1,
                        text.num_key_value_heads, text.head_dim},
                       at::TensorOptions(model_->device()).dtype(model_->dtype()));
    // As one slot of the cache, one state is spare.
    if (has_states()) states_.emplace(text, shape.num_states + 1, float_options());
  }

  void copy_block(int32_t from, int32_t to, int64_t num_tokens) override {
    const auto slots = [&](int32_t block) {
      return cache_.narrow(2, block * shape_.block_len, num_tokens);
    };
    if (from != to) slots(to).copy_(slots(from));
  }

  void copy_state(int32_t from, int32_t to) override {
    REMATCH_CHECK(states_.has_value(), "a copy without states");
    states_->copy(from, to);
  }

  std::span<float> forward(const Step& step) override { return copy_to_host(step_logits(step)); }

  bool can_choose() const override { return !model_->device().is_cpu(); }
  std::vector<ChosenToken> choose(const Step& step, std::span<SamplerRow* const> rows) override {
    const at::Tensor logits = step_logits(step);
    return rows.empty() ? std::vector<ChosenToken>() : sampler_.next(logits, rows);
  }
  int64_t num_near_ties() const override { return sampler_.num_near_ties(); }

  void release() override {
    graphs_.clear();
    states_.reset();
    cache_ = logits_KV_ = at::Tensor();
  }

 private:
  AttentionCase attention_case() const {
    return {.device = model_->device(),
            .dtype = model_->dtype(),
            .head_dim = model_->description().text.head_dim};
  }
  bool reads_pages() const { return has_pages_ && shape_.block_len == kPageTokens; }
  bool has_states() const { return model_->description().text.delta() != nullptr; }

  // Logits on the device of the rows that need them; undefined if there are none.
  at::Tensor step_logits(const Step& step) {
    const at::NoGradGuard no_grad;
    const auto num_rows = std::ssize(step.token_ids);
    REMATCH_CHECK(std::ssize(step.positions_3T) == 3 * num_rows, fmt::format("{} rows", num_rows));
    if (graphs_.can_run(step))
      return graphs_.run(decode_inputs(step, decoding_sequences(step)), num_rows);
    const AttentionPlan plan = plan_attention(step);
    PagedAttention attention(cache_, plan, states_ ? &*states_ : nullptr,
                             states_ ? states_->plan(step) : AtenStatePlan());
    at::Tensor embeds_TH = model_->embed(at::tensor(step.token_ids, at::kInt).to(at::kLong));
    at::Tensor visual_idx_M;
    std::vector<at::Tensor> deepstack_MH;
    if (!step.visual_rows.empty()) {
      std::vector<int64_t> rows;
      for (const VisualRow& visual : step.visual_rows) rows.push_back(visual.row);
      visual_idx_M = index(rows);
      embeds_TH = embeds_TH.index_copy(
          0, visual_idx_M,
          visual_rows(step, [](const VisionFeatures& image) { return image.embeds_MH; }));
      for (size_t i = 0; i < step.visual_rows.front().image->deepstack_MH.size(); ++i) {
        deepstack_MH.push_back(visual_rows(
            step, [i](const VisionFeatures& image) { return image.deepstack_MH.at(i); }));
      }
    }
    const at::Tensor positions_3T = at::tensor(step.positions_3T, at::kLong).view({3, num_rows});
    const at::Tensor hidden_TH =
        model_->decode_TH(embeds_TH, positions_3T, attention, visual_idx_M, deepstack_MH);
    return compute_logits(step, hidden_TH);
  }

  // Pads that follow each other in an image are copied together.
  template <typename Get>
  at::Tensor visual_rows(const Step& step, const Get& get) const {
    std::vector<at::Tensor> parts;
    for (auto first = step.visual_rows.begin(); first != step.visual_rows.end();) {
      auto last = first + 1;
      while (last != step.visual_rows.end() && last->image == first->image &&
             last->pad_idx == first->pad_idx + (last - first))
        ++last;
      parts.push_back(get(*first->image).narrow(0, first->pad_idx, last - first));
      first = last;
    }
    return at::cat(parts).to(model_->device(), model_->dtype());
  }

  at::Tensor compute_logits(const Step& step, const at::Tensor& hidden_TH) {
    std::vector<int64_t> rows;
    for (const StepSequence& sequence : step.sequences) {
      for (int64_t i = sequence.num_rows - sequence.num_logits; i < sequence.num_rows; ++i)
        rows.push_back(sequence.first_row + i);
    }
    if (rows.empty()) return {};
    const at::Tensor hidden_KH = hidden_TH.index_select(0, index(rows));
    return model_->head_KV(hidden_KH);
  }

  std::span<float> copy_to_host(const at::Tensor& logits_KV) {
    if (!logits_KV.defined()) return {};
    logits_KV_ =
        logits_KV.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
    return {logits_KV_.data_ptr<float>(), static_cast<size_t>(logits_KV_.numel())};
  }

  // Logits of a step in which every sequence decodes one token.
  at::Tensor compute_decode(const DecodeInputs& inputs) {
    const AttentionPlan plan{.slots_T = inputs.slots_S, .decode = inputs.cached};
    PagedAttention attention(cache_, plan, states_ ? &*states_ : nullptr,
                             {.next = {.rows_S = {}, .slots_S = inputs.states_S}});
    return model_
        ->head_KV(model_->decode_TH(model_->embed(inputs.token_ids_S), inputs.positions_3S,
                                    attention, {}, {}))
        .to(at::kFloat);
  }

  int64_t find_slot(const StepSequence& sequence, int64_t token_idx) const {
    const auto block = static_cast<size_t>(token_idx / shape_.block_len);
    REMATCH_CHECK(block < sequence.block_table.size(),
                  fmt::format("token {} of {} blocks", token_idx, sequence.block_table.size()));
    return sequence.block_table[block] * shape_.block_len + token_idx % shape_.block_len;
  }

  at::Tensor index(const std::vector<int64_t>& values) const {
    return upload_index(values, model_->device());
  }
  int64_t spare_slot() const { return shape_.num_blocks * shape_.block_len; }
  at::TensorOptions float_options() const {
    return at::TensorOptions(model_->device()).dtype(model_->dtype());
  }

  static std::vector<const StepSequence*> decoding_sequences(const Step& step) {
    std::vector<const StepSequence*> decodes;
    for (const StepSequence& sequence : step.sequences) {
      if (sequence.num_rows == 1) decodes.push_back(&sequence);
    }
    return decodes;
  }

  static int64_t longest_context(const std::vector<const StepSequence*>& decodes) {
    int64_t longest = 0;
    for (const StepSequence* sequence : decodes)
      longest = std::max(longest, sequence->num_cached + 1);
    return longest;
  }

  // Places of the tokens of decoding sequences, padded with sequences of one token.
  CachedTokens find_cached(const std::vector<const StepSequence*>& decodes, int64_t num_rows,
                           int64_t num_tokens) const {
    const SlotShape shape{
        .num_rows = num_rows, .num_tokens = num_tokens, .block_len = shape_.block_len};
    CachedTokens cached;
    if (reads_pages()) {
      cached.pages = page_table(decodes, shape, model_->device());
      return cached;
    }
    if (!model_->device().is_cpu()) {
      std::tie(cached.slots_SL, cached.mask_S11L) = device_slots(decodes, shape, float_options());
      return cached;
    }
    std::vector<int64_t> lens(static_cast<size_t>(num_rows), 1),
        slots(static_cast<size_t>(num_rows * num_tokens), spare_slot());
    auto slot = slots.begin();
    for (size_t s = 0; s < decodes.size(); ++s) {
      lens[s] = decodes[s]->num_cached + 1;
      for (int64_t i = 0; i < num_tokens; ++i)
        *slot++ = find_slot(*decodes[s], std::min(i, decodes[s]->num_cached));
    }
    const at::Tensor visible =
        at::arange(num_tokens, at::kLong) < at::tensor(lens, at::kLong).unsqueeze(1);
    cached.slots_SL = index(slots).view({num_rows, num_tokens});
    cached.mask_S11L = additive_mask(visible, float_options()).view({num_rows, 1, 1, num_tokens});
    return cached;
  }

  // Inputs of a step in which every sequence decodes one token, padded to the size of a graph.
  DecodeInputs decode_inputs(const Step& step,
                             const std::vector<const StepSequence*>& decodes) const {
    const auto [num_rows, num_tokens] =
        DecodeGraphs::padded_size(std::ssize(decodes), longest_context(decodes), reads_pages());
    const auto size = static_cast<size_t>(num_rows), count = step.token_ids.size();
    std::vector<int64_t> token_ids(size, 0), positions(3 * size, 0), slots(size, spare_slot()),
        states(size, shape_.num_states);
    for (size_t s = 0; s < decodes.size(); ++s) {
      const auto row = static_cast<size_t>(decodes[s]->first_row);
      token_ids[s] = step.token_ids[row];
      for (size_t axis = 0; axis < 3; ++axis)
        positions[axis * size + s] = step.positions_3T[axis * count + row];
      slots[s] = find_slot(*decodes[s], decodes[s]->num_cached);
      states[s] = decodes[s]->state;
    }
    return {.token_ids_S = index(token_ids),
            .positions_3S = index(positions).view({3, num_rows}),
            .slots_S = index(slots),
            .states_S = states_ ? index(states) : at::Tensor(),
            .cached = find_cached(decodes, num_rows, num_tokens)};
  }

  // Plans sequences with several rows; each attends to all its tokens up to its last row.
  void plan_prefills(const std::vector<const StepSequence*>& sequences, AttentionPlan& plan) const {
    if (sequences.empty()) return;
    const bool is_varlen = choose_attention(attention_case()) == AttentionKernel::kVarlen;
    std::vector<int64_t> rows, slots, query_lens, key_lens;
    for (const StepSequence* sequence : sequences) {
      const int64_t end = sequence->num_cached + sequence->num_rows;
      for (int64_t i = 0; i < end; ++i) slots.push_back(find_slot(*sequence, i));
      if (is_varlen) {
        for (int64_t i = 0; i < sequence->num_rows; ++i) rows.push_back(sequence->first_row + i);
        query_lens.push_back(sequence->num_rows);
        key_lens.push_back(end);
        continue;
      }
      const at::Tensor query = at::arange(sequence->num_cached, end, at::kLong).unsqueeze(1);
      const at::Tensor mask = additive_mask(at::arange(end, at::kLong) <= query, float_options())
                                  .view({1, 1, sequence->num_rows, end});
      plan.prefills.push_back(
          {sequence->first_row, sequence->num_rows, index(std::exchange(slots, {})), mask});
    }
    if (!is_varlen) return;
    const at::Device device = model_->device();
    plan.varlen = {.rows_P = index(rows),
                   .slots_L = index(slots),
                   .queries = SegmentBounds::from_lens(query_lens, device),
                   .keys = SegmentBounds::from_lens(key_lens, device)};
  }

  AttentionPlan plan_attention(const Step& step) const {
    AttentionPlan plan;
    std::vector<int64_t> slots(step.token_ids.size());
    std::vector<const StepSequence*> several;
    for (const StepSequence& sequence : step.sequences) {
      for (int64_t i = 0; i < sequence.num_rows; ++i) {
        slots[sequence.first_row + i] = find_slot(sequence, sequence.num_cached + i);
      }
      if (sequence.num_rows > 1) several.push_back(&sequence);
    }
    plan_prefills(several, plan);
    plan.slots_T = index(slots);
    const std::vector<const StepSequence*> decodes = decoding_sequences(step);
    if (decodes.empty()) return plan;
    // Whole steps of tokens, so that attention gets few different shapes.
    const int64_t longest = longest_context(decodes),
                  num_tokens = model_->device().is_cpu()
                                   ? longest
                                   : DecodeGraphs::padded_size(1, longest, reads_pages()).second;
    plan.decode = find_cached(decodes, std::ssize(decodes), num_tokens);
    if (decodes.size() == step.token_ids.size()) return plan;
    std::vector<int64_t> rows;
    for (const StepSequence* sequence : decodes) rows.push_back(sequence->first_row);
    plan.decode_rows_S = index(rows);
    return plan;
  }

  std::shared_ptr<const Model> model_;
  CacheShape shape_;
  at::Tensor cache_;  ///< [layer, 2, slots, nkv, D]
  at::Tensor logits_KV_;
  DeviceSampler sampler_;
  bool has_pages_;
  std::optional<AtenStates> states_;  ///< null if the model has none
  DecodeGraphs graphs_;
};

}  // namespace

std::unique_ptr<StepRunner> make_aten_runner(std::shared_ptr<const Model> model,
                                             StepGraphMaker graphs,
                                             const GenerateOptions& sampling) {
  return std::make_unique<AtenRunner>(std::move(model), std::move(graphs), sampling);
}

std::unique_ptr<StepRunner> make_aten_runner(std::shared_ptr<const Model> model,
                                             const GenerateOptions& sampling) {
  StepGraphMaker graphs = device_graphs(model->device());
  return make_aten_runner(std::move(model), std::move(graphs), sampling);
}

}  // namespace rematch
