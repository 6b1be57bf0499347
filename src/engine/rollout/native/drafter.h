#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/rollout/native/draft_table.h"
#include "engine/rollout/native/scheduler.h"

namespace rematch {

/// Adds drafts to steps (prompt lookup, a form of speculative decoding). A step reads all weights
/// for any number of rows, so a row that is probably right is cheaper than a separate step. Answers
/// do not change: a row's bits do not depend on other rows, and a draft that differs from the
/// chosen token is dropped. Torch-free.
class Drafter {
 public:
  /// @param coord_ids  ids of coordinate tokens
  /// @param stop_ids  never drafted
  Drafter(std::span<const TokenId> coord_ids, std::span<const TokenId> stop_ids);

  /// Adds drafts to the items of a plan that need logits, most probable first, while they raise the
  /// number of tokens per second. The time of a step is proportional to rows_per_reading + rows.
  /// Cost: O(log items) per draft.
  void draft(Scheduler& scheduler, StepPlan& plan, double rows_per_reading) const;

  /// Records the next token of `sequence`, before it is appended.
  void learn(const Sequence& sequence, TokenId token_id);

 private:
  DraftTable table_;
  std::vector<TokenId> stop_ids_;
};

}  // namespace rematch
