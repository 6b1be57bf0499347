#include "engine/rollout/vllm/shared_engine.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"
#include "engine/ranks/gather.h"
#include "engine/ranks/phase.h"

namespace rematch {

/// The prompts of all ranks, in rank order.
struct SharedEngine::Round {
  std::vector<Prompt> prompts;
  size_t first = 0;  ///< index of this rank's first prompt
  int num_finished = 0;
};

SharedEngine::Round SharedEngine::meet(State state, const std::vector<Prompt>& prompts) {
  const auto gathered = gather(ranks_, std::pair(state, prompts));
  Round round;
  int failed = -1;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) round.first = round.prompts.size();
    const auto& [their_state, their_prompts] = gathered[rank];
    if (their_state == State::kHasFailed && failed < 0) failed = ranks_.run_rank(rank);
    round.num_finished += their_state == State::kHasFinished ? 1 : 0;
    round.prompts.insert(round.prompts.end(), their_prompts.begin(), their_prompts.end());
  }
  if (failed < 0) return round;
  is_in_turn_ = false;
  throw PeerFailure(ErrorKind::kEnvironment,
                    {.error = "a rank that shares the vLLM engine has failed",
                     .where = fmt::format("rank {}", failed),
                     .what = "it no longer generates",
                     .fix = "look at that rank's own messages"});
}

std::vector<Rollout> SharedEngine::generate(const std::vector<Prompt>& prompts,
                                            const std::function<void(int)>& on_progress) {
  REMATCH_CHECK(is_in_turn_);
  const Round round = meet(State::kHasPrompts, prompts);
  // Progress is global; report this rank's proportional share.
  const auto on_any = [&](int num_done) {
    if (on_progress && !prompts.empty()) {
      on_progress(
          static_cast<int>(static_cast<size_t>(num_done) * prompts.size() / round.prompts.size()));
    }
  };
  std::vector<Rollout> all = engine_->generate(round.prompts, on_any);
  const auto begin = all.begin() + round.first;
  return {std::make_move_iterator(begin), std::make_move_iterator(begin + prompts.size())};
}

void SharedEngine::take_turn(const std::function<void()>& body) {
  is_in_turn_ = true;
  try {
    body();
    generate_for_others();
  } catch (...) {
    report_failure();
    throw;
  }
}

void SharedEngine::generate_for_others() {
  while (is_in_turn_) {
    const Round round = meet(State::kHasFinished, {});
    if (round.num_finished == ranks_.size()) {
      is_in_turn_ = false;
    } else {
      engine_->generate(round.prompts, {});
    }
  }
}

void SharedEngine::report_failure() noexcept {
  if (!is_in_turn_) return;
  try {
    meet(State::kHasFailed, {});
  } catch (...) {  // it always throws, for the others
  }
  is_in_turn_ = false;
}

}  // namespace rematch
