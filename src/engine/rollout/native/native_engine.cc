#include "engine/rollout/native/native_engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <tuple>

#include "base/option_range.h"
#include "engine/rollout/engine_factory.h"
#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/cache_size.h"
#include "engine/rollout/native/cpu/runner.h"
#include "engine/rollout/native/generation.h"
#include "engine/rollout/padded_batch.h"
#include "engine/rollout/repeat_guard.h"
#include "model/text/tokenizer.h"

namespace rematch {
namespace {

std::vector<TokenId> coord_ids(const Tokenizer* tokenizer) {
  std::vector<TokenId> ids;
  if (tokenizer == nullptr) return ids;
  for (const AddedToken& token : tokenizer->added_tokens()) {
    if (token.content.starts_with("<|coord_")) ids.push_back(token.id);
  }
  return ids;
}

std::vector<int64_t> prompt_lens(std::span<const Prompt> prompts) {
  std::vector<int64_t> lens;
  for (const Prompt& prompt : prompts) lens.push_back(std::ssize(prompt.token_ids));
  return lens;
}

}  // namespace

RepeatedPrompts find_repeated_prompts(std::span<const Prompt> prompts) {
  const auto is_before = [](const Prompt* a, const Prompt* b) {
    return std::tie(a->token_ids, a->images) < std::tie(b->token_ids, b->images);
  };
  std::map<const Prompt*, int64_t, decltype(is_before)> counts(is_before);
  RepeatedPrompts repeated{.occurs_later = std::vector<bool>(prompts.size())};
  for (size_t i = prompts.size(); i-- > 0;) {
    const int64_t count = ++counts[&prompts[i]];
    repeated.occurs_later[i] = count > 1;
    if (count == 2) ++repeated.num_distinct;
  }
  return repeated;
}

void check_native_options(const NativeSettings& options) {
  if (options.max_num_seqs < 1)
    refuse_value("native.max_num_seqs", options.max_num_seqs, "1 or more");
  if (!(options.kv_cache_gib >= 0))
    refuse_value("native.kv_cache_gib", options.kv_cache_gib, "a positive number or auto");
  REMATCH_CHECK(options.block_len >= 1 && options.max_step_rows >= 0,
                fmt::format("{}, {}", options.block_len, options.max_step_rows));
}

NativeEngine::NativeEngine(Parts parts, const GenerateOptions& options)
    : parts_(std::move(parts)),
      options_(options),
      drafter_(coord_ids(parts_.tokenizer.get()), options.stop_ids) {
  check_sampling_options(options_);
  if (options_.repeat_terminate.enabled) check_repeat_guard_options(options_.repeat_terminate);
  check_native_options(options_.native);
  options_.native.block_len = static_cast<int>(parts_.runner->block_len(options_.native.block_len));
}

NativeEngine::~NativeEngine() = default;

int64_t NativeEngine::max_live(size_t num_prompts) const {
  return std::min(static_cast<int64_t>(options_.native.max_num_seqs),
                  static_cast<int64_t>(num_prompts));
}

int64_t NativeEngine::max_step_rows(size_t num_prompts) const {
  const int64_t by_device = parts_.model->device().is_cpu() ? kStepRowsOnCpu : kStepRowsOnDevices;
  const int64_t wanted =
      options_.native.max_step_rows > 0 ? options_.native.max_step_rows : by_device;
  return std::max(wanted, max_live(num_prompts));  // every decoding sequence has a row
}

void NativeEngine::ensure_samplers() {
  while (samplers_.size() < static_cast<size_t>(at::get_num_threads()))
    samplers_.emplace_back(options_);
}

int64_t NativeEngine::num_near_ties() const {
  return std::accumulate(
      samplers_.begin(), samplers_.end(), parts_.runner->num_near_ties(),
      [](int64_t sum, const Sampler& sampler) { return sum + sampler.num_near_ties(); });
}

void NativeEngine::sync_weights(int64_t version) {
  // kCurrentWeights: the weights may have changed since the last call.
  if (version != weights_version_ || version == kCurrentWeights) release();
  weights_version_ = version;
}

void NativeEngine::release() {
  blocks_.reset();
  states_.reset();
  parts_.runner->release();
  parts_.encoder.release();
}

void NativeEngine::reserve_cache(std::span<const Prompt> prompts) {
  const NativeSettings& native = options_.native;
  const std::vector<int64_t> lens = prompt_lens(prompts);
  const CacheDemand demand{.prompt_lens = lens,
                           .max_new_tokens = options_.max_new_tokens,
                           .block_bytes = parts_.runner->block_bytes(native.block_len),
                           .state_bytes = parts_.runner->state_bytes(),
                           .num_repeated = find_repeated_prompts(prompts).num_distinct};
  const int64_t free_bytes = free_memory_bytes(parts_.model->device()),
                num_states = num_cache_states(demand, native, free_bytes),
                num_blocks = num_cache_blocks(demand, native, free_bytes);
  const bool has_states =
      demand.state_bytes == 0 || (states_ && states_->num_slots() >= num_states);
  const bool has_room = blocks_ && blocks_->num_blocks() >= num_blocks && has_states;
  auto blocks =
      has_room ? std::move(blocks_)  // with its content
               : std::make_unique<KvBlocks>(KvBlocks::Options{.num_blocks = num_blocks,
                                                              .block_len = native.block_len,
                                                              .prefix_cache = native.prefix_cache});
  for (const Prompt& prompt : prompts) {
    check_fits(std::ssize(prompt.token_ids), options_.max_new_tokens,
               sample_name(prompt.sample_id, prompt.where), *blocks);
  }
  if (!has_room) {
    reserve_memory({.num_blocks = blocks->num_blocks(),
                    .block_len = blocks->block_len(),
                    .num_states = num_states},
                   max_step_rows(prompts.size()));
    if (demand.state_bytes > 0) states_ = std::make_unique<StatePool>(num_states);
  }
  blocks_ = std::move(blocks);
}

void NativeEngine::reserve_memory(const StepRunner::CacheShape& shape, int64_t max_rows) {
  release();
  const auto refuse = [&](const std::string& reason) {
    throw environment_error(
        {.error = "memory is insufficient for the native engine's weights and key/value cache",
         .where = "custom.extra.rollout_matching.native.kv_cache_gib",
         .what = fmt::format("{} blocks of {} bytes, {} states of {} bytes: {}", shape.num_blocks,
                             parts_.runner->block_bytes(shape.block_len), shape.num_states,
                             parts_.runner->state_bytes(), reason),
         .fix = "lower native.kv_cache_gib, native.max_num_seqs or max_new_tokens"});
  };
  try {
    parts_.runner->refresh();
    parts_.encoder.refresh();
    parts_.runner->reserve(shape, max_rows);
  } catch (const c10::Error& error) {
    refuse(error.what_without_backtrace());
  } catch (const std::bad_alloc& error) {
    refuse(error.what());
  }
}

std::vector<Rollout> NativeEngine::generate(const std::vector<Prompt>& prompts,
                                            const std::function<void(int)>& on_progress) {
  const at::NoGradGuard no_grad;
  for (const Prompt& prompt : prompts) check_prompt(prompt, parts_.model->description());
  if (prompts.empty()) return {};
  reserve_cache(prompts);
  return Generation(*this, prompts, on_progress).run();
}

std::unique_ptr<RolloutEngine> make_native_engine(const EngineParts& parts,
                                                  const GenerateOptions& options) {
  // The CPU kernels read copies of all weights in full: packed weights are multiplied by torch.
  const bool on_cpu = parts.model->device().is_cpu() && parts.model->num_packed() == 0;
  return std::make_unique<NativeEngine>(
      NativeEngine::Parts{
          .model = parts.model,
          .tokenizer = parts.tokenizer,
          .pixels = parts.pixels,
          .runner = on_cpu ? make_cpu_runner(parts.model) : make_aten_runner(parts.model, options),
          .encoder = on_cpu ? make_cpu_encoder(parts.model) : make_aten_encoder(parts.model)},
      options);
}

}  // namespace rematch
