#include "native/fake_cache.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace rematch::test {
namespace {

// Entry of token `idx` in the cache, from the entry of the token before it.
uint64_t state_after(uint64_t before, int32_t token_id, const std::vector<ImageSpan>& images,
                     int64_t idx) {
  uint64_t shown = 0;
  for (const ImageSpan& image : images) {
    if (idx >= image.first_token && idx < image.first_token + image.num_tokens)
      shown = image.content.low + image.content.high + 1;
  }
  return random_key({before, static_cast<uint64_t>(token_id), shown});
}

// The last token before the stop id comes about one time in thirty.
int32_t next_token(uint64_t state) {
  const auto drawn = static_cast<int32_t>(state % 100);
  return drawn < 3 ? FakeCache::kStop : drawn;
}

}  // namespace

uint64_t& FakeCache::slot(const std::vector<int32_t>& block_table, int64_t token_idx) {
  const int64_t block_len = blocks_.block_len();
  const auto block =
      static_cast<size_t>(block_table.at(static_cast<size_t>(token_idx / block_len)));
  const size_t index =
      block * static_cast<size_t>(block_len) + static_cast<size_t>(token_idx % block_len);
  if (index >= slots_.size()) slots_.resize(index + 1);
  return slots_[index];
}

// A state is that of the tokens computed so far, perhaps with wrong drafts after them.
void FakeCache::check_state(const Sequence& sequence, const std::vector<uint64_t>& past) {
  std::vector<uint64_t>& state = states_[sequence.state];
  if (sequence.num_computed == 0) state.clear();
  ASSERT_GE(state.size(), past.size()) << "sequence " << sequence.arrival();
  EXPECT_LE(state.size(), past.size() + static_cast<size_t>(kMaxDrafts));
  state.resize(past.size());
  EXPECT_EQ(state, past) << "sequence " << sequence.arrival();
}

std::vector<int32_t> FakeCache::run(const StepPlan& plan,
                                    const std::vector<std::vector<ImageSpan>>& images_by_arrival) {
  for (const BlockCopy& copy : plan.copies) {
    for (int64_t i = 0; i < copy.num_tokens; ++i) slot({copy.to}, i) = slot({copy.from}, i);
  }
  for (const StateCopy& copy : plan.state_copies) states_[copy.to] = states_.at(copy.from);
  std::set<int32_t> states;
  std::vector<int32_t> next;
  for (const StepPlan::Item& item : plan.items) {
    const Sequence& sequence = *item.sequence;
    const std::vector<ImageSpan>& images =
        images_by_arrival.at(static_cast<size_t>(sequence.arrival()));
    uint64_t state = weights_;
    std::vector<uint64_t> past;
    const bool has_state = sequence.state >= 0;
    EXPECT_TRUE(!has_state || states.insert(sequence.state).second) << "a state of two sequences";
    for (int64_t i = 0; i < sequence.num_computed + item.num_rows; ++i) {
      state = state_after(state, sequence.token_at(i), images, i);
      if (i >= sequence.len() - 1 && item.num_logits > 0) next.push_back(next_token(state));
      past.push_back(state);
      if (i < sequence.num_computed) {
        EXPECT_EQ(slot(sequence.block_table, i), state)
            << "token " << i << " of sequence " << sequence.arrival();
        continue;
      }
      EXPECT_EQ(blocks_.num_holders(
                    sequence.block_table.at(static_cast<size_t>(i / blocks_.block_len()))),
                1)
          << "written while shared";
      slot(sequence.block_table, i) = state;
      ++num_rows_computed_;
    }
    if (!has_state) continue;
    check_state(sequence, {past.begin(), past.begin() + sequence.num_computed});
    states_[sequence.state] = past;
  }
  return next;
}

std::vector<int32_t> FakeCache::answer(const std::vector<int32_t>& prompt,
                                       const std::vector<ImageSpan>& images, uint64_t weights,
                                       int64_t max_new_tokens) {
  std::vector<int32_t> token_ids = prompt;
  uint64_t state = weights;
  for (int64_t i = 0; i < static_cast<int64_t>(prompt.size()); ++i)
    state = state_after(state, token_ids[static_cast<size_t>(i)], images, i);
  std::vector<int32_t> generated;
  while (static_cast<int64_t>(generated.size()) < max_new_tokens) {
    const int32_t token_id = next_token(state);
    if (token_id == kStop) break;
    generated.push_back(token_id);
    token_ids.push_back(token_id);
    state = state_after(state, token_id, images, static_cast<int64_t>(token_ids.size()) - 1);
  }
  return generated;
}

}  // namespace rematch::test
