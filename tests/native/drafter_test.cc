#include "engine/rollout/native/drafter.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>

#include "base/random.h"

namespace rematch {
namespace {

constexpr int32_t kStop = 7;

DraftContext context_of(const std::vector<int32_t>& token_ids) {
  DraftContext context;
  for (const int32_t id : token_ids) context.push(id);
  return context;
}

// The table watches `token_ids` go by. Returns how many it had guessed before they came.
int watch(DraftTable& table, const std::vector<int32_t>& token_ids) {
  DraftContext context;
  int num_right = 0;
  for (const int32_t id : token_ids) {
    num_right += table.guess(context).token_id == id ? 1 : 0;
    table.learn(context, id);
    context.push(id);
  }
  return num_right;
}

// An object as an answer has it: key, name, key, four coordinates (ids from 1000 on) with commas
// between them.
void add_object(std::vector<int32_t>& answer, uint64_t seed) {
  const auto coord = [&](uint64_t i) {
    return 1000 + static_cast<int32_t>(random_below(random_key({seed}), i, 1000));
  };
  for (const int32_t id : {10, 11, 12, 100 + static_cast<int32_t>(seed % 5), 13, 14, 15})
    answer.push_back(id);
  for (uint64_t i = 0; i < 4; ++i) {
    answer.push_back(coord(i));
    answer.push_back(i < 3 ? 16 : 17);
  }
  answer.push_back(18);
}

std::vector<int> coord_ids() {
  std::vector<int> ids(1000);
  std::iota(ids.begin(), ids.end(), 1000);
  return ids;
}

// Sequences that decode: their prompts are computed, and one token is known beyond.
struct Decoding {
  explicit Decoding(int num, int64_t max_new_tokens = 100)
      : blocks({.num_blocks = 1000, .block_len = 4, .prefix_cache = false}), scheduler({}, blocks) {
    for (int64_t i = 0; i < num; ++i) {
      sequences.emplace_back(
          Sequence::Start{.arrival = i,
                          .prompt_token_ids = {1, 2, 3, 4, 5, static_cast<int32_t>(20 + i)},
                          .max_new_tokens = max_new_tokens},
          4);
      scheduler.add(sequences.back());
    }
    StepPlan plan = scheduler.next();
    scheduler.mark_computed(plan);
    for (Sequence& sequence : sequences) sequence.append(50);
  }

  KvBlocks blocks;
  std::deque<Sequence> sequences;
  Scheduler scheduler;
};

// Says often enough that `token_ids` follow what each of the sequences holds.
void teach(Drafter& drafter, const Sequence& like, const std::vector<int32_t>& token_ids) {
  for (int round = 0; round < 30; ++round) {
    Sequence sequence({.prompt_token_ids = like.token_ids()}, 4);
    for (const int32_t id : token_ids) {
      drafter.learn(sequence, id);
      sequence.append(id);
    }
  }
}

struct Limits {
  int64_t max_new_tokens = 100;
  double rows_per_reading = 16;
};

// Drafts for an answer whose tokens `token_ids` have often followed. Every draft is a row of the
// step.
std::vector<int32_t> drafts_after(const std::vector<int32_t>& token_ids,
                                  const Limits& limits = {}) {
  Decoding decoding(1, limits.max_new_tokens);
  const std::vector<int> stop_ids{kStop};
  Drafter drafter({}, stop_ids);
  teach(drafter, decoding.sequences[0], token_ids);
  StepPlan plan = decoding.scheduler.next();
  drafter.draft(decoding.scheduler, plan, limits.rows_per_reading);
  const std::vector<int32_t> drafts = decoding.sequences[0].drafts();
  EXPECT_EQ(plan.num_rows, 1 + static_cast<int64_t>(drafts.size()));
  return drafts;
}

}  // namespace

TEST(DraftTable, GuessesNothingBeforeItHasSeenAnything) {
  const DraftTable table({});
  EXPECT_EQ(table.guess(context_of({1, 2, 3})).token_id, -1);
  EXPECT_EQ(table.guess({}).token_id, -1);
}

TEST(DraftTable, GuessesWhatFollowedTheSameTokens) {
  DraftTable table({});
  const std::vector<int32_t> answer{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(watch(table, answer), 0);
  EXPECT_EQ(watch(table, answer), 9);
  EXPECT_EQ(table.guess(context_of({99, 98, 4, 5})).token_id, 6) << "two tokens are enough";
  EXPECT_EQ(table.guess(context_of({99, 98, 4, 6})).token_id, -1);
}

TEST(DraftTable, KnowsTheShapeOfAnObjectWhateverItsCoordinates) {
  const std::vector<int> coords = coord_ids();
  DraftTable table(coords);
  std::vector<int32_t> answer;
  for (uint64_t i = 0; i < 20; ++i) add_object(answer, i);
  watch(table, answer);
  std::vector<int32_t> later;
  for (uint64_t i = 50; i < 70; ++i) add_object(later, i);
  // Sixteen tokens an object, of which four coordinates and a name are news.
  EXPECT_GE(watch(table, later), 20 * 11 - 10);
  // The third comma is followed by another coordinate, the fourth by the end: the place in the
  // object decides.
  EXPECT_EQ(table.guess(context_of({13, 14, 15, 1999, 16, 1998, 16, 1997})).token_id, 16);
  EXPECT_EQ(table.guess(context_of({15, 1999, 16, 1998, 16, 1997, 16, 1996})).token_id, 17);
}

TEST(DraftTable, BelievesWhatCameTrueBefore) {
  const std::vector<int> coords = coord_ids();
  DraftTable table(coords);
  std::vector<int32_t> answer;
  for (uint64_t i = 0; i < 60; ++i) add_object(answer, i);
  watch(table, answer);
  EXPECT_GT(table.guess(context_of({13, 14, 15, 1999, 16, 1998, 16, 1997})).probability, 0.9);
  EXPECT_LT(table.guess(context_of({18, 10, 11, 12, 100, 13, 14, 15})).probability, 0.3)
      << "a coordinate";
  for (int i = 0; i < 100000; ++i) {
    table.learn(context_of({1, 2, static_cast<int32_t>(i % 3000), 5}),
                static_cast<int32_t>(random_below(5, static_cast<uint64_t>(i), 1000)));
  }
  const DraftTable::Guess guess = table.guess(context_of({1, 2, 7, 5}));
  EXPECT_GE(guess.probability, 0);
  EXPECT_LE(guess.probability, 0.2);
}

TEST(Drafter, DraftsWhatItKnowsAndStopsBeforeTheEnd) {
  EXPECT_EQ(drafts_after({61, 62, 63, kStop}), (std::vector<int32_t>{61, 62, 63}));
}

TEST(Drafter, DraftsNothingWhereEveryRowCosts) {
  EXPECT_EQ(drafts_after({61, 62, 63}, {.rows_per_reading = 0}), std::vector<int32_t>{});
}

TEST(Drafter, KeepsToTheLimitOfTheAnswer) {
  EXPECT_EQ(drafts_after({61, 62, 63, 64}, {.max_new_tokens = 3}), std::vector<int32_t>{61})
      << "of three tokens one is known, and the third is never fed back";
}

TEST(Drafter, TakesTheMostProbableAndFewerTheMoreRowsThereAre) {
  Drafter drafter({}, {});
  const auto num_drafts = [&](int num_sequences) {
    Decoding decoding(num_sequences);
    // The token after the first answer is sure, those after the others come one time in two.
    teach(drafter, decoding.sequences[0], {61, 62, 63, 64, 65, 66});
    for (size_t i = 1; i < decoding.sequences.size(); ++i) {
      for (int round = 0; round < 30; ++round) {
        Sequence sequence({.prompt_token_ids = decoding.sequences[i].token_ids()}, 4);
        drafter.learn(sequence,
                      70 + static_cast<int32_t>(random_below(3, static_cast<uint64_t>(round), 2)));
      }
    }
    StepPlan plan = decoding.scheduler.next();
    drafter.draft(decoding.scheduler, plan, 16);
    EXPECT_EQ(decoding.sequences[0].drafts().size(), 6u) << num_sequences;
    int64_t num_others = 0;
    for (size_t i = 1; i < decoding.sequences.size(); ++i)
      num_others += static_cast<int64_t>(decoding.sequences[i].drafts().size());
    return num_others;
  };
  EXPECT_EQ(num_drafts(2), 1) << "reading the weights once more would cost more";
  EXPECT_EQ(num_drafts(40), 0) << "every row costs";
}

}  // namespace rematch
