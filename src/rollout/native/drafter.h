#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rollout/native/draft_table.h"
#include "rollout/native/scheduler.h"

namespace rematch {

/// Adds guesses to steps (prompt lookup, one kind of speculative decoding): a step reads all weights whatever its rows, so a row that is
/// probably right is cheaper than a step of its own. What is answered does not change: a row's bits never depend on other rows, and a
/// guess that is not the token chosen is dropped. Torch-free.
class Drafter {
 public:
  /// @param coord_ids  ids of coordinate tokens  @param stop_ids  never fed back
  Drafter(std::span<const TokenId> coord_ids, std::span<const TokenId> stop_ids);

  /// Adds drafts to the items of a plan that want logits, the most probable first, while they raise the tokens a second: for rows that are
  /// all needed but for drafts, time goes as rows_per_reading + rows. Cost: O(log items) for each draft.
  void draft(Scheduler& scheduler, StepPlan& plan, double rows_per_reading) const;

  /// Says which token follows `sequence`, before it is appended.
  void learn(const Sequence& sequence, TokenId token_id);

 private:
  DraftTable table_;
  std::vector<TokenId> stop_ids_;
};

}  // namespace rematch
