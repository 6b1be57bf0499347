#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/rollout/native/kv_blocks.h"
#include "engine/rollout/native/sequence.h"
#include "engine/rollout/native/state_pool.h"

namespace rematch {

/// A copy of the first tokens of a block into another one, before the step.
struct BlockCopy {
  int32_t from = 0;
  int32_t to = 0;
  int64_t num_tokens = 0;
};

/// The next forward pass.
struct StepPlan {
  struct Item {
    Sequence* sequence = nullptr;
    int64_t num_rows = 0;  ///< tokens after num_computed, including drafts
    /// 1 if the last known token is among them, so that the next one can be chosen; plus 1 per
    /// draft
    int64_t num_logits = 0;
  };
  std::vector<Item> items;
  std::vector<BlockCopy> copies;        ///< in this order
  std::vector<StateCopy> state_copies;  ///< in this order
  int64_t num_rows = 0;
};

/// Rejects a prompt that does not fit into the cache even alone.
/// @param who  sample and place.
/// @throws UserError (config) naming it, with the numbers
void check_fits(int64_t prompt_len, int64_t max_new_tokens, const std::string& who,
                const KvBlocks& blocks);

/// Plans the steps of the engine: one token of every decoding sequence, then parts of prompts up to
/// a budget of rows. Torch-free.
///
/// Sequences enter in order of arrival, except that a sequence waits while another one computes the
/// same prompt, to reuse its blocks. Every running sequence of a model with recurrent states has a
/// state. Such a sequence finds blocks of others only with a state to continue from, and states are
/// saved only after whole prompts that occur again. When blocks run out, the youngest running
/// sequence is preempted and waits again in its old place; its generated tokens are later
/// recomputed like a prompt. So a running sequence never loses blocks to a younger one, and every
/// sequence ends.
///
///     scheduler.add(a); scheduler.add(b);
///     while (scheduler.has_work()) {
///       StepPlan plan = scheduler.next();
///       // add_draft() where a guess is worth a row; copy blocks; compute rows
///       scheduler.computed(plan);
///       // per item with logits: sequence.append(token), repeated while it returns true,
///       // or scheduler.remove(sequence)
///     }
class Scheduler {
 public:
  struct Options {
    int64_t max_num_seqs = 64;    ///< sequences that hold blocks at the same time, ≥ 1
    int64_t max_step_rows = 512;  ///< rows of one step, ≥ 1; raised to max_num_seqs
    /// drafts of one sequence in a step
    int64_t max_drafts = std::numeric_limits<int64_t>::max();
  };
  /// @param blocks  shared by successive schedulers, which find each other's kept content; must
  /// outlive this
  /// @param states  shared in the same way; null if the model has no recurrent states
  Scheduler(const Options& options, KvBlocks& blocks, StatePool* states = nullptr);
  /// Releases all blocks and states.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Queues a sequence by its arrival. Its address must not change until it is removed or the
  /// scheduler is destroyed.
  /// @throws UserError (config) as check_fits()
  void add(Sequence& sequence);
  bool has_work() const { return !waiting_.empty() || !running_.empty(); }
  /// The next step; never empty while there is work. Cost O(sequences + blocks moved).
  StepPlan next();
  /// Adds a draft after the last token of an item that needs logits, as one more row of the step.
  /// Returns false and changes nothing if there is no row, no block or no token left for it. Blocks
  /// of wrong drafts are released before the next step allocates any.
  bool add_draft(StepPlan& plan, StepPlan::Item& item, TokenId token_id);
  /// Reports that the rows of a plan are in the cache. Rows of drafts count when Sequence::append()
  /// accepts them.
  void mark_computed(const StepPlan& plan);
  /// Removes a running or waiting sequence. The blocks of its prompt are kept for others while
  /// there is room.
  void remove(Sequence& sequence);

  int64_t num_running() const { return std::ssize(running_); }
  int64_t num_waiting() const { return std::ssize(waiting_); }
  /// Times a sequence lost its blocks so far.
  int64_t num_preemptions() const { return num_preemptions_; }
  /// Tokens found in the cache instead of computed.
  int64_t num_found_tokens() const { return num_found_tokens_; }

 private:
  using Queue = std::map<int64_t, Sequence*>;  ///< by arrival

  void return_draft_blocks();
  void save_states(StepPlan& plan);
  void plan_decodes(StepPlan& plan);
  void plan_prefills(StepPlan& plan);
  void plan_item(StepPlan& plan, Sequence& sequence, int64_t num_rows);
  bool make_room_for_next_token(Sequence& sequence);
  void preempt(Sequence& sequence);
  void admit_waiting(StepPlan& plan);
  bool waits_for_same_prompt(Sequence& sequence);
  bool give_memory(Sequence& sequence, StepPlan& plan);
  bool give_blocks(Sequence& sequence, StepPlan& plan, bool shares);
  int64_t num_next_rows(const Sequence& sequence) const;
  bool copy_end_of_prompt(Sequence& sequence, StepPlan& plan);
  int64_t num_spare_blocks() const;
  void publish_prompt(Sequence& sequence);
  void drop_blocks(Sequence& sequence);
  void drop_memory(Sequence& sequence);

  Options options_;
  KvBlocks& blocks_;
  StatePool* states_;  ///< null = the model has no states
  Queue waiting_;
  Queue running_;
  bool has_preempted_ = false;  ///< in this step: no new sequence enters
  int64_t num_preemptions_ = 0;
  int64_t num_found_tokens_ = 0;
};

}  // namespace rematch
