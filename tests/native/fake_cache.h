#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "engine/rollout/native/scheduler.h"

namespace rematch::test {

/// Plays the model behind a scheduler: what a slot of the cache "holds" is a hash of its token and
/// of all before it, of the images shown and of the weights. Reading anything but what the
/// sequence's own past would have written is caught at once. A state holds the same of the last
/// tokens.
class FakeCache {
 public:
  FakeCache(const KvBlocks& blocks, uint64_t weights) : blocks_(blocks), weights_(weights) {}

  /// Runs a step.
  /// @return for each row that wants logits, the next token id, 0 to 99
  std::vector<int32_t> run(const StepPlan& plan,
                           const std::vector<std::vector<ImageSpan>>& images_by_arrival);

  /// The answer to a prompt with an endless cache: what every schedule must give.
  static std::vector<int32_t> answer(const std::vector<int32_t>& prompt,
                                     const std::vector<ImageSpan>& images, uint64_t weights,
                                     int64_t max_new_tokens);

  /// Drafts that a state can take back; more are a failure.
  static constexpr int64_t kMaxDrafts = 3;

  int64_t num_rows_computed() const { return num_rows_computed_; }

  static constexpr int32_t kStop = 0;

 private:
  void check_state(const Sequence& sequence, const std::vector<uint64_t>& past);
  uint64_t& slot(const std::vector<int32_t>& block_table, int64_t token_idx);

  const KvBlocks& blocks_;
  uint64_t weights_;
  std::vector<uint64_t> slots_;
  std::map<int32_t, std::vector<uint64_t>> states_;  ///< by slot: what each token has left there
  int64_t num_rows_computed_ = 0;
};

}  // namespace rematch::test
