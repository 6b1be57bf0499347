#include "engine/rollout/native/drafter.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "model/text/stop_ids.h"

namespace rematch {
namespace {

// More rows gain little, and each needs memory for the logits of the whole vocabulary.
constexpr int64_t kMaxRows = 64;

DraftContext last_tokens(const Sequence& sequence) {
  DraftContext context;
  for (int64_t i =
           std::max<int64_t>(0, sequence.len() - static_cast<int64_t>(DraftContext::kLength));
       i < sequence.len(); ++i) {
    context.push(sequence.token_at(i));
  }
  return context;
}

// The next draft for an item, and the probability that it and all before it are right.
struct Candidate {
  double probability = 0;
  size_t item_idx = 0;
  TokenId token_id = -1;
  DraftContext context;  // of the tokens before it
  bool operator<(const Candidate& other) const { return probability < other.probability; }
};

}  // namespace

Drafter::Drafter(std::span<const TokenId> coord_ids, std::span<const TokenId> stop_ids)
    : table_(coord_ids), stop_ids_(stop_ids.begin(), stop_ids.end()) {}

void Drafter::draft(Scheduler& scheduler, StepPlan& plan, double rows_per_reading) const {
  if (rows_per_reading <= 0) return;
  auto num_useful = static_cast<double>(plan.num_rows);
  std::priority_queue<Candidate> candidates;
  const auto offer = [&](Candidate candidate) {
    const DraftTable::Guess guess = table_.guess(candidate.context);
    if (guess.token_id < 0 || is_stop_id(guess.token_id, stop_ids_)) return;
    candidate.token_id = guess.token_id;
    candidate.probability *= guess.probability;
    // The threshold only rises, so a candidate below it never succeeds.
    if (candidate.probability * (rows_per_reading + static_cast<double>(plan.num_rows)) >
        num_useful)
      candidates.push(candidate);
  };
  for (size_t i = 0; i < plan.items.size() && plan.num_rows < kMaxRows; ++i) {
    if (plan.items[i].num_logits > 0)
      offer({.probability = 1, .item_idx = i, .context = last_tokens(*plan.items[i].sequence)});
  }
  while (!candidates.empty() && plan.num_rows < kMaxRows) {
    Candidate best = candidates.top();
    candidates.pop();
    if (best.probability * (rows_per_reading + static_cast<double>(plan.num_rows)) <= num_useful)
      return;
    if (!scheduler.add_draft(plan, plan.items[best.item_idx], best.token_id)) continue;
    num_useful += best.probability;
    best.context.push(best.token_id);
    offer(best);
  }
}

void Drafter::learn(const Sequence& sequence, TokenId token_id) {
  table_.learn(last_tokens(sequence), token_id);
}

}  // namespace rematch
