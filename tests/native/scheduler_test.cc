#include "engine/rollout/native/scheduler.h"

#include <gtest/gtest.h>

#include "native/schedule_play.h"
#include "support/capture.h"

namespace rematch {

using namespace test;  // NOLINT(google-build-using-namespace): the file speaks of little else

TEST(Scheduler, FiveHundredRandomSchedulesGiveTheSameIds) {
  int64_t num_preemptions = 0, num_found_tokens = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const std::vector<Request> requests = draw_requests(seed);
    Play play(draw_setting(seed, requests));
    ASSERT_EQ(play.answer(requests), expected(requests)) << "seed " << seed;
    // Again on what the first round left in the cache.
    ASSERT_EQ(play.answer(requests), expected(requests)) << "seed " << seed;
    num_preemptions += play.num_preemptions;
    num_found_tokens += play.num_found_tokens;
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(num_preemptions, 500) << "the draw must force some";
  EXPECT_GT(num_found_tokens, 5000);
}

TEST(Scheduler, DraftsRightAndWrongGiveTheSameIds) {
  int64_t num_drafts = 0, num_right = 0, num_preemptions = 0, num_steps = 0, num_steps_without = 0;
  for (uint64_t seed = 3000; seed < 3300; ++seed) {
    const std::vector<Request> requests = draw_requests(seed);
    const std::vector<std::vector<int32_t>> wanted = expected(requests);
    Play without(draw_setting(seed, requests)), play(draw_setting(seed, requests));
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
    ASSERT_EQ(without.answer(requests), wanted) << "seed " << seed;
    ASSERT_EQ(play.answer(requests), wanted) << "seed " << seed;
    ASSERT_EQ(play.answer(requests), wanted)
        << "seed " << seed << ": what drafts left in the cache is sound";
    num_drafts += play.num_drafts;
    num_right += play.num_right_drafts;
    num_preemptions += play.num_preemptions;
    num_steps += play.num_steps;
    num_steps_without += 2 * without.num_steps;
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(num_right, 5000);
  EXPECT_GT(num_drafts, num_right + 5000) << "some must be wrong";
  EXPECT_GT(num_preemptions, 200);
  EXPECT_LT(num_steps, num_steps_without);
}

TEST(Scheduler, ADraftTakesNothingFromAnybody) {
  KvBlocks blocks({.num_blocks = 4, .block_len = 2, .prefix_cache = false});
  Scheduler scheduler({.max_num_seqs = 2, .max_step_rows = 8}, blocks);
  std::deque<Sequence> sequences;
  for (int64_t i = 0; i < 2; ++i) {
    sequences.emplace_back(Sequence::Start{.arrival = i,
                                           .prompt_token_ids = tokens(static_cast<uint64_t>(i), 2),
                                           .max_new_tokens = 4},
                           2);
    scheduler.add(sequences.back());
  }
  StepPlan plan = scheduler.next();  // two prompts, a block each
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_TRUE(scheduler.add_draft(plan, plan.items[0], 1));
  EXPECT_TRUE(scheduler.add_draft(plan, plan.items[0], 2)) << "in the block of the first";
  EXPECT_TRUE(scheduler.add_draft(plan, plan.items[0], 3)) << "the last block";
  EXPECT_FALSE(scheduler.add_draft(plan, plan.items[0], 4))
      << "the last of four tokens is never fed back";
  EXPECT_FALSE(scheduler.add_draft(plan, plan.items[1], 1)) << "no block is left";
  EXPECT_EQ(plan.num_rows, 7);
  EXPECT_EQ(plan.items[0].num_logits, 4);
  EXPECT_EQ(plan.items[1].num_logits, 1);
  scheduler.mark_computed(plan);
  EXPECT_EQ(sequences[0].num_computed, 2) << "drafts count when they are right";
  EXPECT_TRUE(sequences[0].append(1));
  EXPECT_FALSE(sequences[0].append(9));
  EXPECT_EQ(sequences[0].num_computed, 3);
  EXPECT_TRUE(sequences[0].drafts().empty());
  sequences[1].append(5);
  plan = scheduler.next();
  EXPECT_EQ(plan.items.size(), 2u) << "the younger gets the block that a wrong draft had";
  EXPECT_EQ(scheduler.num_preemptions(), 0);
  scheduler.remove(sequences[0]);
  scheduler.remove(sequences[1]);
  EXPECT_EQ(blocks.num_available(), blocks.num_blocks());
}

TEST(Scheduler, SequencesThatAreGivenUpLeaveTheOthersAlone) {
  int64_t num_cancelled = 0;
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    const std::vector<Request> requests = draw_requests(seed);
    const std::vector<std::vector<int32_t>> wanted = expected(requests);
    Play play(draw_setting(seed, requests));
    std::set<int64_t> given_up;
    uint64_t step = 0;
    const auto answers = play.answer(requests, [&](const std::set<int64_t>& open) {
      std::set<int64_t> chosen;
      for (const int64_t arrival : open) {
        if (draw(random_key({seed, ++step}), 30, 0, 40) == 0) chosen.insert(arrival);
      }
      given_up.insert(chosen.begin(), chosen.end());
      return chosen;
    });
    for (size_t i = 0; i < requests.size(); ++i) {
      if (given_up.count(static_cast<int64_t>(i)) > 0) continue;
      ASSERT_EQ(answers[i], wanted[i]) << "seed " << seed;
    }
    ASSERT_EQ(play.answer(requests), wanted)
        << "seed " << seed << ": what they left in the cache is sound";
    num_cancelled += static_cast<int64_t>(given_up.size());
  }
  EXPECT_GT(num_cancelled, 200);
}

TEST(Scheduler, EveryBlockLengthPreemptsAndStillGivesTheSameIds) {
  for (int64_t block_len = 1; block_len <= 32; ++block_len) {
    std::vector<Request> requests;
    for (uint64_t i = 0; i < 12; ++i)
      requests.push_back({.prompt = tokens(i, 40), .max_new_tokens = 60});
    Setting setting = roomy(block_len);
    setting.blocks.num_blocks = (99 + block_len - 1) / block_len + 1;
    Play play(setting);
    EXPECT_EQ(play.answer(requests), expected(requests)) << "blocks of " << block_len;
    EXPECT_GT(play.num_preemptions, 0) << "blocks of " << block_len;
  }
}

TEST(Scheduler, DecodesAllTogetherAndPrefillsInChunks) {
  Setting setting = roomy();
  setting.schedule.max_step_rows = 10;
  KvBlocks blocks(setting.blocks);
  std::deque<Sequence> sequences;
  Scheduler scheduler(setting.schedule, blocks);
  for (int64_t i = 0; i < 2; ++i) {
    sequences.emplace_back(Sequence::Start{.arrival = i,
                                           .prompt_token_ids = tokens(static_cast<uint64_t>(i), 13),
                                           .max_new_tokens = 5},
                           4);
    scheduler.add(sequences.back());
  }
  const auto step = [&] {
    std::vector<std::pair<int64_t, int64_t>> rows;
    const StepPlan plan = scheduler.next();
    for (const StepPlan::Item& item : plan.items)
      rows.emplace_back(item.sequence->arrival(), item.num_rows);
    scheduler.mark_computed(plan);
    for (const StepPlan::Item& item : plan.items) {
      if (item.num_logits > 0) item.sequence->append(1);
    }
    return rows;
  };
  using Rows = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(step(), (Rows{{0, 10}}));
  EXPECT_EQ(step(), (Rows{{0, 3}, {1, 7}}));
  EXPECT_EQ(step(), (Rows{{0, 1}, {1, 6}}));
  EXPECT_EQ(step(), (Rows{{0, 1}, {1, 1}}));
}

TEST(Scheduler, LetsNobodyInBeyondMaxNumSeqsAndTheLongestWaitingFirst) {
  Setting setting = roomy();
  setting.schedule.max_num_seqs = 2;
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 6; ++i)
    requests.push_back({.prompt = tokens(100 + i, 5), .max_new_tokens = 1});
  Play play(setting);
  EXPECT_EQ(play.answer(requests), expected(requests));
  EXPECT_EQ(play.finished, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(play.num_steps, 3);
}

TEST(Scheduler, TheYoungestGivesUpItsBlocksAndComesBackInItsPlace) {
  Setting setting = roomy(2);
  setting.blocks = {.num_blocks = 10, .block_len = 2, .prefix_cache = false};
  KvBlocks blocks(setting.blocks);
  std::deque<Sequence> sequences;
  Scheduler scheduler(setting.schedule, blocks);
  for (int64_t i = 0; i < 3; ++i) {
    sequences.emplace_back(Sequence::Start{.arrival = i,
                                           .prompt_token_ids = tokens(static_cast<uint64_t>(i), 6),
                                           .max_new_tokens = 14},
                           2);
    scheduler.add(sequences.back());
  }
  std::vector<int64_t> decoded_by(3);
  while (scheduler.has_work()) {
    const StepPlan plan = scheduler.next();
    int64_t oldest = 0;
    while (decoded_by[static_cast<size_t>(oldest)] == 14) ++oldest;
    EXPECT_TRUE(std::any_of(plan.items.begin(), plan.items.end(), [&](const auto& item) {
      return item.sequence->arrival() == oldest;
    })) << "the oldest continues in every step";
    scheduler.mark_computed(plan);
    for (const StepPlan::Item& item : plan.items) {
      if (item.num_logits == 0) continue;
      ++decoded_by[static_cast<size_t>(item.sequence->arrival())];
      if (item.sequence->len() == 19) {
        scheduler.remove(*item.sequence);
      } else {
        item.sequence->append(3);
      }
    }
  }
  EXPECT_GT(scheduler.num_preemptions(), 0);
  EXPECT_EQ(decoded_by, (std::vector<int64_t>{14, 14, 14}))
      << "what was generated is not generated again";
  EXPECT_EQ(blocks.num_available(), blocks.num_blocks());
}

TEST(Scheduler, EqualPromptsAreComputedOnce) {
  for (const int64_t prompt_len : {1, 2, 4, 5, 17, 20, 21, 24, 40}) {
    const std::vector<Request> requests(
        5, Request{.prompt = tokens(9, prompt_len), .max_new_tokens = 1});
    Play play(roomy());
    EXPECT_EQ(play.answer(requests), expected(requests));
    // Without a whole block before their last token, none waits for the first.
    const int64_t computed_each = prompt_len < 5 ? prompt_len : 1;
    EXPECT_EQ(play.cache.num_rows_computed(), prompt_len + 4 * computed_each)
        << "prompts of " << prompt_len;
    // And later ones find the whole prompt, wherever it ends in a block.
    play.answer({requests.front()});
    EXPECT_EQ(play.cache.num_rows_computed(), prompt_len + 4 * computed_each + 1)
        << "prompts of " << prompt_len;
  }
}

TEST(Scheduler, WritesToACopyOfASharedBlock) {
  // Equal prompts that end inside a block and then go different ways: their owner keeps writing
  // behind the prompt meanwhile.
  Play play(roomy(8));
  const Request request{.prompt = tokens(3, 13), .max_new_tokens = 20};
  Request longer = request;
  longer.prompt.push_back(77);
  const std::vector<Request> requests{request, request, longer, request};
  EXPECT_EQ(play.answer(requests), expected(requests));
  EXPECT_EQ(play.answer(requests), expected(requests));
  EXPECT_GT(play.num_found_tokens, 0);
}

TEST(Scheduler, SharesTheStartOfPromptsWithOtherImagesUpToTheImage) {
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 4; ++i) {
    requests.push_back(
        {.prompt = tokens(5, 32), .images = {{16, 8, {i % 2, 0}}}, .max_new_tokens = 1});
    std::fill_n(requests.back().prompt.begin() + 16, 8, 50);
  }
  Play play(roomy(4));
  EXPECT_EQ(play.answer(requests), expected(requests));
  EXPECT_EQ(play.cache.num_rows_computed(), 32 + 16 + 1 + 1);
}

TEST(Scheduler, ForgottenSequencesGiveTheirBlocksBack) {
  KvBlocks blocks({.num_blocks = 40, .block_len = 4});
  const std::vector<int32_t> prompt = tokens(1, 20);
  std::deque<Sequence> sequences;
  for (int64_t i = 0; i < 4; ++i)
    sequences.emplace_back(Sequence::Start{.arrival = i, .prompt_token_ids = prompt}, 4);
  {
    Scheduler scheduler({.max_num_seqs = 2, .max_step_rows = 30}, blocks);
    for (Sequence& sequence : sequences) scheduler.add(sequence);
    scheduler.mark_computed(scheduler.next());
    scheduler.next();  // and nothing computed: the engine was interrupted
    EXPECT_LT(blocks.num_available(), blocks.num_blocks());
    scheduler.remove(sequences[3]);  // waiting
    scheduler.remove(sequences[0]);  // running
    EXPECT_THROW(scheduler.remove(sequences[0]), InternalError);
  }
  EXPECT_EQ(blocks.num_available(), blocks.num_blocks());
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  const auto refused = [](int64_t num_blocks, int64_t prompt_len, int64_t max_new_tokens) {
    KvBlocks blocks({.num_blocks = num_blocks, .block_len = 4});
    Scheduler scheduler({}, blocks);
    Sequence sequence({.prompt_token_ids = tokens(1, prompt_len),
                       .max_new_tokens = max_new_tokens,
                       .who = "sample 7 (x.jsonl:8)"},
                      4);
    const UserError error = test::catch_user_error([&] { scheduler.add(sequence); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_EQ(error.problems().front().where, "sample 7 (x.jsonl:8)");
    EXPECT_FALSE(scheduler.has_work());
    return error.problems().front().what;
  };
  EXPECT_NE(refused(4, 17, 1).find("17 prompt tokens"), std::string::npos);
  EXPECT_NE(refused(4, 10, 8).find("5 blocks of 4 tokens; the cache has 4"), std::string::npos);
  EXPECT_NE(refused(0, 1, 1).find("the cache has 0"), std::string::npos);
  refused(1000, 1, INT64_MAX);
  KvBlocks blocks({.num_blocks = 4, .block_len = 4});
  Sequence fits({.prompt_token_ids = tokens(1, 10), .max_new_tokens = 7}, 4);
  Scheduler scheduler({}, blocks);
  scheduler.add(fits);
  EXPECT_EQ(scheduler.next().num_rows, 10);
}

}  // namespace rematch
