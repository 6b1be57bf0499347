#include "engine/rollout/native/generation.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/rollout/answer_end.h"

namespace rematch {
namespace {

// Least number of logits per thread for which parallel sampling pays off.
constexpr int64_t kLogitsPerTask = 1 << 15;

}  // namespace

NativeEngine::Generation::Generation(NativeEngine& engine, const std::vector<Prompt>& prompts,
                                     const std::function<void(int)>& on_progress)
    : engine_(engine),
      options_(engine.options_),
      prompts_(prompts),
      repeated_(find_repeated_prompts(prompts)),
      on_progress_(on_progress),
      rows_per_reading_(options_.native.drafts ? engine.parts_.runner->rows_per_reading() : 0),
      images_(engine.parts_.model->description(), engine.parts_.pixels, engine.parts_.encoder),
      rollouts_(prompts.size()),
      scheduler_({.max_num_seqs = engine.max_live(prompts.size()),
                  .max_step_rows = engine.max_step_rows(prompts.size()),
                  .max_drafts = engine.parts_.runner->max_drafts()},
                 *engine.blocks_, engine.states_.get()) {
  images_.expect(prompts);
}

std::vector<Rollout> NativeEngine::Generation::run() {
  while (true) {
    throw_if_interrupted();
    queue_prompts();
    if (!scheduler_.has_work()) break;
    step();
  }
  engine_.stats_.num_found_tokens += scheduler_.num_found_tokens();
  engine_.stats_.num_preemptions += scheduler_.num_preemptions();
  engine_.stats_.num_images += images_.num_encoded();
  return std::move(rollouts_);
}

// Loads only as many prompts as can run at the same time.
void NativeEngine::Generation::queue_prompts() {
  while (next_prompt_ < prompts_.size() &&
         scheduler_.num_running() + scheduler_.num_waiting() < engine_.max_live(prompts_.size())) {
    const size_t idx = next_prompt_++;
    const Prompt& prompt = prompts_[idx];
    rollouts_[idx].sample_id = prompt.sample_id;
    rollouts_[idx].prompt_token_ids = prompt.token_ids;
    const auto [at, is_new] = live_.try_emplace(
        static_cast<int64_t>(idx), idx, prompt, options_, engine_.parts_.tokenizer.get(),
        *engine_.parts_.model, images_.spans(prompt), repeated_.occurs_later[idx]);
    scheduler_.add(at->second.sequence);
  }
}

void NativeEngine::Generation::step() {
  StepPlan plan = scheduler_.next();
  engine_.drafter_.draft(scheduler_, plan, rows_per_reading_);
  for (const BlockCopy& copy : plan.copies)
    engine_.parts_.runner->copy_block(copy.from, copy.to, copy.num_tokens);
  for (const StateCopy& copy : plan.state_copies)
    engine_.parts_.runner->copy_state(copy.from, copy.to);
  encode_images(plan);
  const Step step = make_step(plan);
  if (engine_.parts_.runner->can_choose() && !engine_.observer_) {
    choose_on_device(plan, step);
    ++engine_.stats_.num_steps;
    engine_.stats_.num_rows += plan.num_rows;
    return;
  }
  const std::span<float> logits_KV = engine_.parts_.runner->forward(step);
  scheduler_.mark_computed(plan);
  const auto [num_drafts, num_right] = choose_tokens(plan, logits_KV);
  ++engine_.stats_.num_steps;
  engine_.stats_.num_rows += plan.num_rows - num_drafts + num_right;
  engine_.stats_.num_drafts += num_drafts;
  engine_.stats_.num_right_drafts += num_right;
}

// Calls visit(image, first, end) for the token range of each image in an item.
template <typename Visit>
void NativeEngine::Generation::for_each_shown_image(const StepPlan::Item& item,
                                                    const Visit& visit) {
  const int64_t first = item.sequence->num_computed, end = first + item.num_rows;
  for (const ImageSpan& image : find_answer(item).images) {
    const int64_t from = std::max(first, image.first_token),
                  to = std::min(end, image.first_token + image.num_tokens);
    if (from < to) visit(image, from, to);
  }
}

void NativeEngine::Generation::encode_images(const StepPlan& plan) {
  std::vector<ContentKey> shown;
  for (const StepPlan::Item& item : plan.items) {
    for_each_shown_image(
        item, [&](const ImageSpan& image, int64_t, int64_t) { shown.push_back(image.content); });
  }
  images_.encode(shown);
}

Step NativeEngine::Generation::make_step(const StepPlan& plan) {
  Step step;
  step.token_ids.reserve(plan.num_rows);
  step.positions_3T.resize(3 * plan.num_rows);
  for (const StepPlan::Item& item : plan.items) {
    const LiveAnswer& answer = find_answer(item);
    const Sequence& sequence = answer.sequence;
    const auto first_row = std::ssize(step.token_ids);
    for (int64_t i = 0; i < item.num_rows; ++i) {
      const int64_t token_idx = sequence.num_computed + i;
      step.token_ids.push_back(sequence.token_at(token_idx));
      for (int64_t axis = 0; axis < 3; ++axis) {
        step.positions_3T[axis * plan.num_rows + first_row + i] = answer.position(axis, token_idx);
      }
    }
    for_each_shown_image(item, [&](const ImageSpan& image, int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        step.visual_rows.push_back(images_.visual_row(image.content, i - image.first_token,
                                                      first_row + i - sequence.num_computed));
      }
    });
    step.sequences.push_back({.first_row = first_row,
                              .num_rows = item.num_rows,
                              .num_cached = sequence.num_computed,
                              .block_table = sequence.block_table,
                              .num_logits = item.num_logits,
                              .state = sequence.state});
  }
  return step;
}

void NativeEngine::Generation::choose_on_device(const StepPlan& plan, const Step& step) {
  std::vector<LiveAnswer*> answers;
  std::vector<SamplerRow*> rows;
  for (const StepPlan::Item& item : plan.items) {
    if (item.num_logits == 0) continue;
    answers.push_back(&find_answer(item));
    rows.push_back(&answers.back()->sampler);
  }
  const std::vector<ChosenToken> tokens = engine_.parts_.runner->choose(step, rows);
  scheduler_.mark_computed(plan);
  const int num_done_before = num_done_;
  for (size_t i = 0; i < answers.size(); ++i) add_token(*answers[i], tokens[i]);
  report_progress(num_done_before);
}

void NativeEngine::Generation::report_progress(int num_done_before) {
  if (num_done_ > num_done_before && on_progress_) on_progress_(num_done_);
}

NativeEngine::Generation::DraftCount NativeEngine::Generation::choose_tokens(
    const StepPlan& plan, std::span<float> logits_KV) {
  const auto vocab_size = static_cast<size_t>(engine_.parts_.model->description().text.vocab_size);
  std::vector<Pending> pending;
  int64_t num_logits = 0, num_right = 0;
  for (const StepPlan::Item& item : plan.items) {
    if (item.num_logits == 0) continue;
    pending.push_back(
        {&find_answer(item),
         logits_KV.subspan(static_cast<size_t>(num_logits) * vocab_size, vocab_size)});
    num_logits += item.num_logits;
  }
  REMATCH_CHECK(logits_KV.size() == static_cast<size_t>(num_logits) * vocab_size,
                fmt::format("{} logits", logits_KV.size()));
  const int64_t num_drafts = num_logits - std::ssize(pending);
  const int num_done_before = num_done_;
  while (!pending.empty()) {
    if (engine_.observer_) {
      for (const Pending& next : pending) {
        engine_.observer_(next.answer->prompt_idx,
                          static_cast<size_t>(next.answer->sampler.num_generated()), next.logits_V);
      }
    }
    const std::vector<ChosenToken> tokens = sample(pending);
    // If the token equals the draft, the next row of logits is available too.
    std::vector<Pending> continuing;
    for (size_t i = 0; i < pending.size(); ++i) {
      if (add_token(*pending[i].answer, tokens[i]) != Added::kDrafted) continue;
      continuing.push_back(
          {pending[i].answer, {pending[i].logits_V.data() + vocab_size, vocab_size}});
    }
    pending = std::move(continuing);
    num_right += std::ssize(pending);
  }
  report_progress(num_done_before);
  return {num_drafts, num_right};
}

std::vector<ChosenToken> NativeEngine::Generation::sample(const std::vector<Pending>& pending) {
  const auto num_rows = std::ssize(pending);
  const int64_t rows_per_task =
      std::max<int64_t>(1, kLogitsPerTask / std::ssize(pending.front().logits_V));
  std::vector<ChosenToken> tokens(pending.size());
  std::vector<std::exception_ptr> errors(pending.size());
  engine_.ensure_samplers();
  at::parallel_for(0, num_rows, rows_per_task, [&](int64_t first, int64_t end) {
    Sampler& sampler = engine_.samplers_.at(at::get_thread_num());
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(end); ++i) {
      try {
        tokens[i] = sampler.next(pending[i].logits_V, pending[i].answer->sampler);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return tokens;
}

// Adds a token to an answer; removes the answer if it ends.
NativeEngine::Generation::Added NativeEngine::Generation::add_token(LiveAnswer& answer,
                                                                    const ChosenToken& token) {
  if (rows_per_reading_ > 0) engine_.drafter_.learn(answer.sequence, token.token_id);
  if (!take_token(token, options_, answer.guard, rollouts_[answer.prompt_idx]))
    return answer.sequence.append(token.token_id) ? Added::kDrafted : Added::kWaits;
  scheduler_.remove(answer.sequence);
  images_.finish(answer.prompt);
  live_.erase(answer.sequence.arrival());
  ++num_done_;
  return Added::kEnded;
}

}  // namespace rematch
