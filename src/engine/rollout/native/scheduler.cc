#include "engine/rollout/native/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace rematch {
namespace {

constexpr int64_t kEndless = int64_t{1} << 60;  // keeps sums in range

}  // namespace

void check_fits(int64_t prompt_len, int64_t max_new_tokens, const std::string& who,
                const KvBlocks& blocks) {
  // The last token of an answer is not fed back.
  const int64_t needed = blocks.blocks_for(prompt_len + std::min(max_new_tokens, kEndless) - 1);
  if (needed <= blocks.num_blocks()) return;
  throw config_error(
      {.error = "a prompt and its answer do not fit into the native engine's key/value cache",
       .where = who,
       .what = fmt::format(
           "{} prompt tokens and up to {} new ones need {} blocks of {} tokens; the cache has {}",
           prompt_len, max_new_tokens, needed, blocks.block_len(), blocks.num_blocks()),
       .fix = "raise custom.extra.rollout_matching.native.kv_cache_gib or lower max_new_tokens; "
              "rollout_backend: hf has no such limit"});
}

Scheduler::Scheduler(const Options& options, KvBlocks& blocks, StatePool* states)
    : options_(options), blocks_(blocks), states_(states) {
  REMATCH_CHECK(options.max_num_seqs >= 1 && options.max_step_rows >= 1,
                fmt::format("{} sequences, {} rows", options.max_num_seqs, options.max_step_rows));
  // Room for every decoding sequence and at least one row of a prefill.
  options_.max_step_rows = std::max(options_.max_step_rows, options_.max_num_seqs);
}

Scheduler::~Scheduler() {
  for (const auto& [arrival, sequence] : running_) drop_memory(*sequence);
}

void Scheduler::add(Sequence& sequence) {
  REMATCH_CHECK(sequence.prompt_len() >= 1 && sequence.block_table.empty(), sequence.who());
  check_fits(sequence.prompt_len(), sequence.max_new_tokens(), sequence.who(), blocks_);
  REMATCH_CHECK(running_.count(sequence.arrival()) == 0 &&
                    waiting_.emplace(sequence.arrival(), &sequence).second,
                sequence.who());
}

StepPlan Scheduler::next() {
  StepPlan plan;
  has_preempted_ = false;
  return_draft_blocks();
  save_states(plan);
  plan_decodes(plan);
  plan_prefills(plan);
  if (!has_preempted_) admit_waiting(plan);
  REMATCH_CHECK(!has_work() || plan.num_rows > 0,
                fmt::format("{} running, {} waiting", num_running(), num_waiting()));
  return plan;
}

// Releases blocks of wrong drafts, so that drafts do not affect which blocks are available.
void Scheduler::return_draft_blocks() {
  for (const auto& [arrival, sequence] : running_) {
    while (std::ssize(sequence->block_table) > blocks_.blocks_for(sequence->len())) {
      blocks_.release(sequence->block_table.back());
      sequence->block_table.pop_back();
    }
  }
}

// Saves the states after prompts that occur again. They lack the last token, because another answer
// to the same prompt computes that token again for its logits.
void Scheduler::save_states(StepPlan& plan) {
  if (states_ == nullptr || !blocks_.prefix_cache()) return;
  for (const auto& [arrival, sequence] : running_) {
    if (!sequence->is_repeated() || sequence->num_computed == 0 ||
        sequence->num_computed != sequence->prompt_len() - 1)
      continue;
    const std::optional<int32_t> slot = states_->save(sequence->prompt_key());
    if (slot) plan.state_copies.push_back({sequence->state, *slot});
  }
}

// Known tokens to compute next. A prompt whose state is saved stops before its last token.
int64_t Scheduler::num_next_rows(const Sequence& sequence) const {
  const bool is_saved = states_ != nullptr && blocks_.prefix_cache() && sequence.is_repeated();
  const int64_t stop = sequence.prompt_len() - 1;
  return (is_saved && sequence.num_computed < stop ? stop : sequence.len()) - sequence.num_computed;
}

void Scheduler::plan_item(StepPlan& plan, Sequence& sequence, int64_t num_rows) {
  plan.items.push_back(
      {&sequence, num_rows, sequence.num_computed + num_rows == sequence.len() ? 1 : 0});
  plan.num_rows += num_rows;
}

void Scheduler::plan_decodes(StepPlan& plan) {
  // By arrival, so that planned sequences are older than any that a later one can preempt.
  std::optional<int64_t> last;
  while (true) {
    const auto at = last ? running_.upper_bound(*last) : running_.begin();
    if (at == running_.end()) return;
    last = at->first;
    Sequence& sequence = *at->second;
    if (sequence.len() - sequence.num_computed != 1) continue;
    if (make_room_for_next_token(sequence)) plan_item(plan, sequence, 1);
  }
}

bool Scheduler::make_room_for_next_token(Sequence& sequence) {
  if (blocks_.blocks_for(sequence.num_computed + 1) <= std::ssize(sequence.block_table))
    return true;
  while (blocks_.num_available() == 0) {
    Sequence& youngest = *running_.rbegin()->second;
    preempt(youngest);
    if (&youngest == &sequence) return false;
  }
  sequence.block_table.push_back(blocks_.allocate());
  return true;
}

void Scheduler::plan_prefills(StepPlan& plan) {
  for (const auto& [arrival, sequence] : running_) {
    if (sequence->len() - sequence->num_computed == 1) continue;  // planned with the decodes
    const int64_t num_rows =
        std::min(num_next_rows(*sequence), options_.max_step_rows - plan.num_rows);
    if (num_rows > 0) plan_item(plan, *sequence, num_rows);
  }
}

void Scheduler::admit_waiting(StepPlan& plan) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (num_running() >= options_.max_num_seqs || plan.num_rows >= options_.max_step_rows) return;
    Sequence& sequence = *at->second;
    if (waits_for_same_prompt(sequence)) {
      ++at;
      continue;
    }
    if (!give_memory(sequence, plan)) return;
    num_found_tokens_ += sequence.num_computed;
    at = waiting_.erase(at);
    running_.emplace(sequence.arrival(), &sequence);
    plan_item(plan, sequence,
              std::min(num_next_rows(sequence), options_.max_step_rows - plan.num_rows));
  }
}

// True if a running sequence is about to compute a block that this one needs too, so that this one
// can reuse it a step later.
bool Scheduler::waits_for_same_prompt(Sequence& sequence) {
  if (!blocks_.prefix_cache()) return false;
  const int64_t block_len = blocks_.block_len();
  for (const auto& [arrival, other] : running_) {
    if (states_ != nullptr) {
      const bool will_be_saved = other->is_repeated() && other->num_computed < other->prompt_len();
      if (will_be_saved && sequence.len() == other->prompt_len() &&
          sequence.prompt_len() == other->prompt_len() &&
          sequence.prompt_key() == other->prompt_key())
        return true;
      continue;
    }
    const int64_t block_idx = other->num_published;  // its first unpublished block
    const int64_t end = (block_idx + 1) * block_len;
    if (end > other->prompt_len() || end > sequence.len() - 1) continue;
    if (sequence.block_key(block_idx) == other->block_key(block_idx)) return true;
  }
  return false;
}

// Blocks to leave free when a sequence enters, so that the next token of a running sequence does
// not preempt it.
int64_t Scheduler::num_spare_blocks() const { return running_.empty() ? 0 : 1; }

// Gives a sequence blocks and, if the model has states, a state. Returns false and changes nothing
// if there is too little of either.
bool Scheduler::give_memory(Sequence& sequence, StepPlan& plan) {
  REMATCH_CHECK(sequence.block_table.empty() && sequence.num_computed == 0, sequence.who());
  if (states_ == nullptr) return give_blocks(sequence, plan, blocks_.prefix_cache());
  if (states_->num_available() == 0) return false;
  const int32_t state = states_->allocate();
  std::optional<int32_t> saved;
  if (blocks_.prefix_cache() && sequence.prompt_len() > 1 &&
      sequence.len() == sequence.prompt_len())
    saved = states_->find(sequence.prompt_key());
  bool has_blocks = saved && give_blocks(sequence, plan, /*shares=*/true);
  if (has_blocks && sequence.num_computed < sequence.prompt_len() - 1) {
    // Some of the prompt's keys are lost, and the state after the others was not saved.
    drop_blocks(sequence);
    has_blocks = false;
  }
  if (has_blocks) {
    plan.state_copies.push_back({*saved, state});
  } else if (!give_blocks(sequence, plan, /*shares=*/false)) {
    states_->release(state);
    return false;
  }
  sequence.state = state;
  return true;
}

// Allocates all blocks for the known tokens of a sequence: shared ones first, new ones for the
// rest. Returns false and changes nothing if there are too few.
bool Scheduler::give_blocks(Sequence& sequence, StepPlan& plan, bool shares) {
  const int64_t block_len = blocks_.block_len();
  // The last token is always computed: its logits are needed.
  const int64_t num_findable = (sequence.len() - 1) / block_len;
  for (int64_t i = 0; shares && i < num_findable; ++i) {
    const std::optional<int32_t> found = blocks_.acquire(sequence.block_key(i));
    if (!found) break;
    sequence.block_table.push_back(*found);
  }
  const int64_t num_blocks = blocks_.blocks_for(sequence.len());
  const auto num_found = std::ssize(sequence.block_table);
  if (blocks_.num_available() < num_blocks - num_found + num_spare_blocks()) {
    drop_blocks(sequence);
    return false;
  }
  sequence.num_computed = num_found * block_len;
  sequence.num_published = std::min(num_found, sequence.prompt_len() / block_len);
  if (shares && num_found == num_findable && copy_end_of_prompt(sequence, plan)) return true;
  while (std::ssize(sequence.block_table) < num_blocks)
    sequence.block_table.push_back(blocks_.allocate());
  return true;
}

// Copy on write: if the whole prompt was computed before and ends inside a block, copies that block
// except for its last token.
bool Scheduler::copy_end_of_prompt(Sequence& sequence, StepPlan& plan) {
  const int64_t num_tokens = sequence.prompt_len() - 1 - sequence.num_computed;
  if (num_tokens < 1 || sequence.len() != sequence.prompt_len()) return false;
  const std::optional<int32_t> shared = blocks_.acquire(sequence.prompt_key());
  if (!shared) return false;
  // Acquiring the shared block may have used the last available one.
  const bool has_room = blocks_.num_available() > 0;
  if (has_room) {
    sequence.block_table.push_back(blocks_.allocate());
    sequence.num_computed += num_tokens;
    plan.copies.push_back({*shared, sequence.block_table.back(), num_tokens});
  }
  blocks_.release(*shared);
  return has_room;
}

bool Scheduler::add_draft(StepPlan& plan, StepPlan::Item& item, TokenId token_id) {
  Sequence& sequence = *item.sequence;
  REMATCH_CHECK(item.num_logits >= 1, sequence.who());
  const int64_t end = sequence.num_computed + item.num_rows + 1;
  // The last token of an answer is not fed back.
  if (plan.num_rows >= options_.max_step_rows ||
      std::ssize(sequence.drafts()) >= options_.max_drafts ||
      end - sequence.prompt_len() >= sequence.max_new_tokens())
    return false;
  if (blocks_.blocks_for(end) > std::ssize(sequence.block_table)) {
    if (blocks_.num_available() == 0) return false;
    sequence.block_table.push_back(blocks_.allocate());
  }
  sequence.draft(token_id);
  ++item.num_rows;
  ++item.num_logits;
  ++plan.num_rows;
  return true;
}

void Scheduler::mark_computed(const StepPlan& plan) {
  for (const StepPlan::Item& item : plan.items) {
    Sequence& sequence = *item.sequence;
    sequence.num_computed += item.num_rows - std::ssize(sequence.drafts());
    REMATCH_CHECK(sequence.num_computed <= sequence.len(), sequence.who());
    publish_prompt(sequence);
  }
}

void Scheduler::publish_prompt(Sequence& sequence) {
  if (!blocks_.prefix_cache()) return;
  const int64_t block_len = blocks_.block_len(),
                num_blocks = blocks_.blocks_for(sequence.prompt_len());
  while (sequence.num_published < num_blocks) {
    const int64_t block_idx = sequence.num_published, end = (block_idx + 1) * block_len;
    if (sequence.num_computed < std::min(end, sequence.prompt_len())) return;
    const ContentKey key =
        end <= sequence.prompt_len() ? sequence.block_key(block_idx) : sequence.prompt_key();
    blocks_.publish(sequence.block_table[block_idx], key);
    ++sequence.num_published;
  }
}

void Scheduler::preempt(Sequence& sequence) {
  // Publishes the blocks of its answer too, so that it can find them again if they are not evicted.
  const int64_t block_len = blocks_.block_len();
  const bool shares = blocks_.prefix_cache() && states_ == nullptr;
  for (int64_t i = 0; shares && (i + 1) * block_len <= sequence.num_computed; ++i) {
    blocks_.publish(sequence.block_table[i], sequence.block_key(i));
  }
  drop_memory(sequence);
  running_.erase(sequence.arrival());
  waiting_.emplace(sequence.arrival(), &sequence);
  has_preempted_ = true;
  ++num_preemptions_;
}

void Scheduler::drop_blocks(Sequence& sequence) {
  // In reverse order, so that the start of the prompt, which more prompts share, is evicted last.
  for (auto block = sequence.block_table.rbegin(); block != sequence.block_table.rend(); ++block)
    blocks_.release(*block);
  sequence.block_table.clear();
  sequence.num_computed = 0;
  sequence.num_published = 0;
}

void Scheduler::drop_memory(Sequence& sequence) {
  drop_blocks(sequence);
  if (sequence.state < 0) return;
  states_->release(sequence.state);
  sequence.state = -1;
}

void Scheduler::remove(Sequence& sequence) {
  const bool was_running = running_.erase(sequence.arrival()) > 0;
  REMATCH_CHECK(was_running || waiting_.erase(sequence.arrival()) > 0, sequence.who());
  drop_memory(sequence);
}

}  // namespace rematch
