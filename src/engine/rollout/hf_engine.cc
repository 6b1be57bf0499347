#include "engine/rollout/hf_engine.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/rollout/answer_end.h"
#include "engine/rollout/kv_cache.h"
#include "engine/rollout/padded_batch.h"
#include "model/delta_layer.h"
#include "model/nn/upload.h"
#include "model/text/tokenizer.h"

namespace rematch {
namespace {

// Shapes: B rows in the cache, P prompt columns, H hidden, V vocabulary.

// Columns reserved at a time: rollouts usually end long before max_new_tokens.
constexpr int64_t kColumnChunk = 128;
// Finished rows are removed from the cache when they are at least 1/kCompactFraction of it; until
// then they are computed and ignored.
constexpr int64_t kCompactFraction = 4;

// One prompt being answered.
struct DecodingRow {
  DecodingRow(const Prompt& prompt, Rollout& rollout, const GenerateOptions& options,
              const Tokenizer* tokenizer, int64_t vocab_size)
      : rollout(&rollout),
        sampler(prompt, options, vocab_size),
        guard(options.repeat_terminate, tokenizer) {
    rollout.sample_id = prompt.sample_id;
    rollout.prompt_token_ids = prompt.token_ids;
  }

  Rollout* rollout;
  SamplerRow sampler;
  RepeatGuard guard;
  int64_t next_position = 0;
  TokenId last_token_id = 0;
  bool finished = false;
};

// Generates for one padded batch: prefill, then one token per step for every live row.
class BatchDecoder {
 public:
  BatchDecoder(const Model& model, Sampler& sampler, DeviceSampler& device_sampler,
               const GenerateOptions& options)
      : model_(model), sampler_(sampler), device_sampler_(device_sampler), options_(options) {}

  void run(std::span<const Prompt> prompts, std::span<Rollout> rollouts, const Tokenizer* tokenizer,
           const PixelGetter& pixels, const std::function<void(int)>& on_finished) {
    const int64_t vocab_size = model_.description().text.vocab_size;
    for (size_t i = 0; i < prompts.size(); ++i)
      rows_.emplace_back(prompts[i], rollouts[i], options_, tokenizer, vocab_size);
    at::Tensor logits_BV = prefill(pad_prompts(prompts, model_, pixels));
    while (true) {
      const int num_finished = choose_tokens(logits_BV);
      if (num_finished > 0) on_finished(num_finished);
      if (std::ranges::all_of(rows_, [](const DecodingRow& row) { return row.finished; })) return;
      throw_if_interrupted();
      make_room();
      logits_BV = step();
    }
  }

 private:
  at::Tensor prefill(const PaddedBatch& batch) {
    const TextDescription& text = model_.description().text;
    max_columns_ = batch.num_columns() + options_.max_new_tokens;
    const KvCache::Shape shape{text.num_attention_layers(), text.num_key_value_heads,
                               text.head_dim};
    const at::TensorOptions options(at::TensorOptions(model_.device()).dtype(model_.dtype()));
    cache_ = std::make_unique<KvCache>(
        shape, batch.paddings, std::min(max_columns_, batch.num_columns() + kColumnChunk), options);
    if (const DeltaDescription* delta = text.delta()) {
      states_ = std::make_unique<StateCache>(
          StateCache::Shape{text.num_delta_layers(), delta->conv_kernel, heads_of(*delta)},
          cache_->num_rows(), options);
    }
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i].next_position = batch.next_positions[i];
    at::Tensor embeds_BPH = model_.embed(batch.token_ids_BP);
    if (batch.visual_idx_M.defined()) {
      const at::Tensor flat = embeds_BPH.reshape({-1, text.hidden_size});
      embeds_BPH =
          flat.index_copy(0, batch.visual_idx_M, batch.vision.embeds_MH.to(flat.scalar_type()))
              .view(embeds_BPH.sizes());
    }
    return forward(embeds_BPH, batch.positions_3BP, batch.visual_idx_M, batch.vision.deepstack_MH);
  }

  at::Tensor step() {
    const auto num_rows = std::ssize(rows_);
    at::Tensor token_ids = at::empty({num_rows, 1}, at::kLong);
    at::Tensor positions = at::empty({num_rows, 1}, at::kLong);
    for (int64_t i = 0; i < num_rows; ++i) {
      DecodingRow& row = rows_[i];
      token_ids.data_ptr<int64_t>()[i] = row.last_token_id;
      positions.data_ptr<int64_t>()[i] = row.next_position++;
    }
    return forward(model_.embed(token_ids), positions.unsqueeze(0).expand({3, num_rows, 1}), {},
                   {});
  }

  // Logits [B, V] after the last column; of a model on the CPU in float32, as the sampler there
  // takes them.
  at::Tensor forward(const at::Tensor& embeds_BTH, const at::Tensor& positions_3BT,
                     const at::Tensor& visual_idx_M, const std::vector<at::Tensor>& deepstack_MH) {
    const int64_t num_new = embeds_BTH.size(1);
    CachedAttention attention(*cache_, num_new, model_.dtype(), model_.device(), states_.get());
    const at::Tensor hidden_BTH =
        model_.decode_TH(embeds_BTH, positions_3BT, attention, visual_idx_M, deepstack_MH);
    cache_->advance(num_new);
    const at::Tensor logits_BV = model_.head_KV(hidden_BTH.select(1, num_new - 1));
    return logits_BV.is_cpu() ? logits_BV.to(at::kFloat).contiguous() : logits_BV;
  }

  // Chooses the next token of every live row. Returns the number of rows that finish with it.
  int choose_tokens(const at::Tensor& logits_BV) {
    return logits_BV.is_cpu() ? choose_on_host(logits_BV) : choose_on_device(logits_BV);
  }

  // @returns 1 if the row finishes with the token
  int take(DecodingRow& row, const ChosenToken& token) {
    row.last_token_id = token.token_id;
    row.finished = take_token(token, options_, row.guard, *row.rollout);
    return row.finished ? 1 : 0;
  }

  int choose_on_device(const at::Tensor& logits_BV) {
    std::vector<int64_t> live;
    std::vector<SamplerRow*> samplers;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].finished) continue;
      live.push_back(static_cast<int64_t>(i));
      samplers.push_back(&rows_[i].sampler);
    }
    const bool is_all = live.size() == rows_.size();
    const std::vector<ChosenToken> tokens = device_sampler_.next(
        is_all ? logits_BV : logits_BV.index_select(0, upload_index(live, logits_BV.device())),
        samplers);
    int num_finished = 0;
    for (size_t i = 0; i < live.size(); ++i) num_finished += take(rows_[live[i]], tokens[i]);
    return num_finished;
  }

  int choose_on_host(const at::Tensor& logits_BV) {
    const int64_t vocab_size = logits_BV.size(1);
    float* const logits = logits_BV.data_ptr<float>();
    int num_finished = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      DecodingRow& row = rows_[i];
      if (row.finished) continue;
      const ChosenToken token = sampler_.next(
          {logits + static_cast<int64_t>(i) * vocab_size, static_cast<size_t>(vocab_size)},
          row.sampler);
      num_finished += take(row, token);
    }
    return num_finished;
  }

  // Removes finished rows if that pays off, and ensures a free column.
  void make_room() {
    std::vector<int64_t> live;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].finished) live.push_back(static_cast<int64_t>(i));
    }
    const auto num_rows = std::ssize(rows_);
    const int64_t num_finished = num_rows - std::ssize(live);
    const bool is_full = cache_->len() == cache_->capacity();
    if (!is_full && num_finished * kCompactFraction < num_rows) return;
    const int64_t growth = is_full ? std::max(kColumnChunk, cache_->len() / 4) : 0;
    cache_->rebuild(live, std::min(max_columns_, cache_->capacity() + growth));
    if (states_) states_->keep_rows(live);
    std::erase_if(rows_, [](const DecodingRow& row) { return row.finished; });
  }

  const Model& model_;
  Sampler& sampler_;
  DeviceSampler& device_sampler_;
  const GenerateOptions& options_;
  std::vector<DecodingRow> rows_;  // row i of the cache; live or not yet dropped
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<StateCache> states_;  // null for a model of attention only
  int64_t max_columns_ = 0;
};

}  // namespace

HfEngine::HfEngine(std::shared_ptr<const Model> model, std::shared_ptr<const Tokenizer> tokenizer,
                   PixelGetter pixels, const GenerateOptions& options)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      pixels_(std::move(pixels)),
      options_(options),
      sampler_(options),
      device_sampler_(options) {
  if (options_.repeat_terminate.enabled) check_repeat_guard_options(options_.repeat_terminate);
}

std::vector<Rollout> HfEngine::generate(const std::vector<Prompt>& prompts,
                                        const std::function<void(int)>& on_progress) {
  const at::NoGradGuard no_grad;
  for (const Prompt& prompt : prompts) check_prompt(prompt, model_->description());
  std::vector<Rollout> rollouts(prompts.size());
  int num_done = 0;
  const auto on_finished = [&](int num_finished) {
    num_done += num_finished;
    if (on_progress) on_progress(num_done);
  };
  const auto batch_size = static_cast<size_t>(options_.batch_size);
  for (size_t first = 0; first < prompts.size(); first += batch_size) {
    throw_if_interrupted();
    const size_t count = std::min(batch_size, prompts.size() - first);
    BatchDecoder decoder(*model_, sampler_, device_sampler_, options_);
    decoder.run(std::span(prompts).subspan(first, count), std::span(rollouts).subspan(first, count),
                tokenizer_.get(), pixels_, on_finished);
  }
  return rollouts;
}

}  // namespace rematch
