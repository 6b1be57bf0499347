#include "engine/rollout/native/state_pool.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "native/schedule_play.h"

namespace rematch {

using namespace test;  // NOLINT(google-build-using-namespace): the file speaks of little else

namespace {

ContentKey hash_key(uint64_t number) { return {number, ~number}; }

// As a model with states: little room for them, drafts a state can take back.
Setting draw_state_setting(uint64_t seed, const std::vector<Request>& requests) {
  Setting setting = draw_setting(seed, requests);
  setting.num_states = draw(seed, 26, 1, 10);
  setting.schedule.max_drafts = FakeCache::kMaxDrafts;
  return setting;
}

std::vector<Request> same_prompts(int64_t num, int64_t len, int64_t max_new_tokens = 4) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < num; ++i)
    requests.push_back({.prompt = tokens(7, len), .max_new_tokens = max_new_tokens});
  return requests;
}

}  // namespace

TEST(StatePool, GivesEachSlotToOneSequenceUntilNoneIsLeft) {
  StatePool states(3);
  std::set<int32_t> given;
  for (int i = 0; i < 3; ++i) given.insert(states.allocate());
  EXPECT_EQ(given, (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(states.num_available(), 0);
  EXPECT_THROW(states.allocate(), InternalError);
  EXPECT_THROW(states.release(3), InternalError);
  EXPECT_EQ(states.save(hash_key(1)), std::nullopt) << "sequences come first";
  states.release(1);
  EXPECT_EQ(states.allocate(), 1);
}

TEST(StatePool, FindsASavedStateUntilItsSlotIsNeeded) {
  StatePool states(2);
  const int32_t sequence = states.allocate();
  const std::optional<int32_t> saved = states.save(hash_key(1));
  ASSERT_TRUE(saved.has_value());
  EXPECT_NE(*saved, sequence);
  EXPECT_EQ(states.find(hash_key(1)), saved);
  EXPECT_EQ(states.find(hash_key(2)), std::nullopt);
  EXPECT_EQ(states.save(hash_key(1)), std::nullopt) << "known";
  EXPECT_EQ(states.num_saved(), 1);
  EXPECT_EQ(states.num_used(), 1) << "a saved state has no sequence";
  EXPECT_EQ(states.allocate(), *saved);
  EXPECT_EQ(states.find(hash_key(1)), std::nullopt);
}

TEST(StatePool, OverwritesTheStateThatWasUsedLongestAgo) {
  StatePool states(3);
  const std::vector<std::optional<int32_t>> saved{
      states.save(hash_key(1)), states.save(hash_key(2)), states.save(hash_key(3))};
  states.find(hash_key(1));
  EXPECT_EQ(states.save(hash_key(4)), saved[1]);
  EXPECT_EQ(states.find(hash_key(2)), std::nullopt);
  EXPECT_EQ(states.find(hash_key(1)), saved[0]);
}

// Any order of calls: a slot has one sequence, one saved state or nothing.
RC_GTEST_PROP(StatePool, NeverMixesStates, ()) {
  const int64_t num_slots = *rc::gen::inRange<int64_t>(1, 8);
  StatePool states(num_slots);
  std::vector<int32_t> held;
  std::map<int32_t, uint64_t> content;  // what was written to a slot last
  for (const int action : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
    const auto number = static_cast<uint64_t>(action / 10 % 9 + 1);
    if (action % 10 < 4) {
      if (states.num_available() == 0) continue;
      held.push_back(states.allocate());
      content[held.back()] = 0;
    } else if (action % 10 < 7) {
      const bool is_known = states.find(hash_key(number)).has_value();
      const std::optional<int32_t> slot = states.save(hash_key(number));
      RC_ASSERT(slot.has_value() == (!is_known && states.num_available() > 0));
      if (slot) content[*slot] = number;
    } else if (!held.empty()) {
      states.release(held.front());
      held.erase(held.begin());
    }
    RC_ASSERT(states.num_used() == static_cast<int64_t>(held.size()));
    RC_ASSERT(std::set<int32_t>(held.begin(), held.end()).size() == held.size());
    RC_ASSERT(states.num_saved() <= states.num_available());
    for (uint64_t i = 1; i < 10; ++i) {
      const std::optional<int32_t> slot = states.find(hash_key(i));
      RC_ASSERT((!slot || content.at(*slot) == i));
      RC_ASSERT((!slot || std::count(held.begin(), held.end(), *slot) == 0));
    }
  }
}

TEST(SchedulerWithStates, FiveHundredRandomSchedulesGiveTheSameIds) {
  int64_t num_preemptions = 0, num_found_tokens = 0, num_right = 0, num_drafts = 0;
  for (uint64_t seed = 5000; seed < 5500; ++seed) {
    const std::vector<Request> requests = draw_requests(seed);
    const std::vector<std::vector<int32_t>> wanted = expected(requests);
    Play play(draw_state_setting(seed, requests));
    uint64_t num_asked = 0;
    play.guess = [&](const Sequence& sequence) -> std::optional<int32_t> {
      const uint64_t one = random_key({seed, ++num_asked});
      if (draw(one, 40, 0, 3) == 0) return std::nullopt;
      const std::vector<int32_t>& answer = wanted[static_cast<size_t>(sequence.arrival())];
      const auto next =
          static_cast<size_t>(sequence.len() - sequence.prompt_len()) + sequence.drafts().size();
      const bool knows = next < answer.size() && draw(one, 41, 0, 3) > 0;
      return knows ? answer[next] : static_cast<int32_t>(draw(one, 42, 0, 99));
    };
    ASSERT_EQ(play.answer(requests), wanted) << "seed " << seed;
    ASSERT_EQ(play.answer(requests), wanted) << "seed " << seed << ", again";
    num_preemptions += play.num_preemptions;
    num_found_tokens += play.num_found_tokens;
    num_right += play.num_right_drafts;
    num_drafts += play.num_drafts;
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(num_preemptions, 200) << "the draw must force some";
  EXPECT_GT(num_found_tokens, 2000);
  EXPECT_GT(num_right, 5000);
  EXPECT_GT(num_drafts, num_right + 2000) << "some must be wrong";
}

TEST(SchedulerWithStates, EqualPromptsAreComputedOnce) {
  for (const int64_t len : {2, 4, 5, 17}) {
    Setting setting = roomy();
    setting.num_states = 9;
    Play play(setting);
    const std::vector<Request> requests = same_prompts(6, len);
    EXPECT_EQ(play.answer(requests), expected(requests));
    EXPECT_EQ(play.num_found_tokens, 5 * (len - 1)) << "all but the last token";
    EXPECT_EQ(play.states->num_saved(), 1);
  }
}

TEST(SchedulerWithStates, WithoutASlotForItAStateIsComputedAgain) {
  Setting setting = roomy();
  setting.num_states = 1;  // the running sequence's
  Play play(setting);
  const std::vector<Request> requests = same_prompts(3, 17);
  EXPECT_EQ(play.answer(requests), expected(requests));
  EXPECT_EQ(play.num_found_tokens, 0);
}

TEST(SchedulerWithStates, PromptsThatOnlyBeginAlikeShareNothing) {
  Setting setting = roomy();
  setting.num_states = 8;
  Play play(setting);
  std::vector<Request> requests{{.prompt = tokens(7, 20)}, {.prompt = tokens(7, 24)}};
  EXPECT_EQ(play.answer(requests), expected(requests));
  EXPECT_EQ(play.num_found_tokens, 0) << "there is no state where they part";
  EXPECT_EQ(play.states->num_saved(), 0);
}

TEST(SchedulerWithStates, AsManySequencesRunAsThereAreStates) {
  Setting setting = roomy();
  setting.num_states = 2;
  Play play(setting);
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 5; ++i) requests.push_back({.prompt = tokens(i, 6)});
  EXPECT_EQ(play.answer(requests), expected(requests));
}

}  // namespace rematch
