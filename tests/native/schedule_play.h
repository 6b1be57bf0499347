#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "engine/rollout/native/scheduler.h"
#include "native/fake_cache.h"

namespace rematch::test {

// Whole runs of the scheduler over a cache that computes nothing, and the random requests and
// settings they are tried with.

inline constexpr uint64_t kWeights = 4711;

struct Request {
  std::vector<int32_t> prompt;
  std::vector<ImageSpan> images;
  int64_t max_new_tokens = 8;

  bool same_prompt(const Request& other) const {
    return prompt == other.prompt &&
           std::equal(images.begin(), images.end(), other.images.begin(), other.images.end(),
                      [](const ImageSpan& a, const ImageSpan& b) {
                        return a.first_token == b.first_token && a.num_tokens == b.num_tokens &&
                               a.content == b.content;
                      });
  }
};

struct Setting {
  Scheduler::Options schedule;
  KvBlocks::Options blocks;
  int64_t num_states = 0;  ///< 0 = the model has none
};

// A whole run: requests in, answers out, as the engine does it.
struct Play {
  explicit Play(const Setting& setting)
      : setting(setting), blocks(setting.blocks), cache(blocks, kWeights) {
    if (setting.num_states > 0) states.emplace(setting.num_states);
  }

  // @param cancel  called before every step with the arrivals that are not finished; those it
  // returns are given up
  std::vector<std::vector<int32_t>> answer(
      const std::vector<Request>& requests,
      const std::function<std::set<int64_t>(const std::set<int64_t>&)>& cancel = {}) {
    std::set<int64_t> open;
    std::deque<Sequence> sequences;
    std::vector<std::vector<ImageSpan>> images;
    std::vector<std::vector<int32_t>> answers(requests.size());
    Scheduler scheduler(setting.schedule, blocks, states ? &*states : nullptr);
    for (const Request& request : requests) {
      sequences.emplace_back(Sequence::Start{.arrival = static_cast<int64_t>(images.size()),
                                             .prompt_token_ids = request.prompt,
                                             .images = request.images,
                                             .max_new_tokens = request.max_new_tokens,
                                             .is_repeated = occurs_later(requests, images.size()),
                                             .who = "sample " + std::to_string(images.size())},
                             setting.blocks.block_len);
      open.insert(sequences.back().arrival());
      images.push_back(request.images);
      scheduler.add(sequences.back());
    }
    while (scheduler.has_work()) {
      for (const int64_t arrival : cancel ? cancel(open) : std::set<int64_t>{}) {
        scheduler.remove(sequences[static_cast<size_t>(arrival)]);
        open.erase(arrival);
      }
      if (!scheduler.has_work()) break;
      StepPlan plan = scheduler.next();
      if (guess) add_drafts(scheduler, plan);
      check(plan, scheduler);
      const std::vector<int32_t> next = cache.run(plan, images);
      scheduler.mark_computed(plan);
      size_t first_of_item = 0;
      for (const StepPlan::Item& item : plan.items) {
        Sequence& sequence = *item.sequence;
        std::vector<int32_t>& answer = answers[static_cast<size_t>(sequence.arrival())];
        const int64_t max_new_tokens =
            requests[static_cast<size_t>(sequence.arrival())].max_new_tokens;
        for (int64_t i = 0; i < item.num_logits; ++i) {
          const int32_t token_id = next[first_of_item + static_cast<size_t>(i)];
          if (token_id != FakeCache::kStop) answer.push_back(token_id);
          if (token_id == FakeCache::kStop ||
              static_cast<int64_t>(answer.size()) == max_new_tokens) {
            open.erase(sequence.arrival());
            finished.push_back(sequence.arrival());
            scheduler.remove(sequence);
            break;
          }
          if (!sequence.append(token_id)) break;
          ++num_right_drafts;
        }
        first_of_item += static_cast<size_t>(item.num_logits);
      }
    }
    num_preemptions += scheduler.num_preemptions();
    num_found_tokens += scheduler.num_found_tokens();
    EXPECT_EQ(blocks.num_available(), blocks.num_blocks());
    EXPECT_EQ(states ? states->num_used() : 0, 0);
    return answers;
  }

  static bool occurs_later(const std::vector<Request>& requests, size_t idx) {
    return std::any_of(requests.begin() + static_cast<std::ptrdiff_t>(idx) + 1, requests.end(),
                       [&](const Request& other) { return other.same_prompt(requests[idx]); });
  }

  // Guesses for any item that wants logits, as far as they find room.
  void add_drafts(Scheduler& scheduler, StepPlan& plan) {
    for (StepPlan::Item& item : plan.items) {
      while (item.num_logits > 0) {
        const std::optional<int32_t> token_id = guess(*item.sequence);
        if (!token_id || !scheduler.add_draft(plan, item, *token_id)) break;
        ++num_drafts;
      }
    }
  }

  void check(const StepPlan& plan, const Scheduler& scheduler) {
    ++num_steps;
    int64_t num_rows = 0;
    std::set<const Sequence*> in_step;
    for (const StepPlan::Item& item : plan.items) {
      EXPECT_TRUE(in_step.insert(item.sequence).second) << "an item is a sequence of its own";
      num_rows += item.num_rows;
      EXPECT_GE(item.num_rows, 1);
      const int64_t end = item.sequence->num_computed + item.num_rows;
      const auto drafts = static_cast<int64_t>(item.sequence->drafts().size());
      EXPECT_EQ(item.num_logits, end == item.sequence->len() + drafts ? 1 + drafts : 0);
      EXPECT_LT(end - item.sequence->prompt_len(), item.sequence->max_new_tokens())
          << "the last token of an answer is never fed back";
      EXPECT_GE(static_cast<int64_t>(item.sequence->block_table.size()), blocks.blocks_for(end));
    }
    EXPECT_EQ(num_rows, plan.num_rows);
    EXPECT_LE(num_rows, std::max(setting.schedule.max_step_rows, setting.schedule.max_num_seqs));
    EXPECT_LE(scheduler.num_running(), setting.schedule.max_num_seqs);
    if (states) {
      EXPECT_EQ(scheduler.num_running(), states->num_used());
    }
  }

  Setting setting;
  KvBlocks blocks;
  std::optional<StatePool> states;
  FakeCache cache;
  std::vector<int64_t> finished;  ///< arrivals in the order they ended
  int64_t num_steps = 0, num_preemptions = 0, num_found_tokens = 0, num_drafts = 0,
          num_right_drafts = 0;
  /// The next draft of a sequence, or none; empty = no guess.
  std::function<std::optional<int32_t>(const Sequence&)> guess;
};

inline std::vector<std::vector<int32_t>> expected(const std::vector<Request>& requests) {
  std::vector<std::vector<int32_t>> answers;
  for (const Request& request : requests) {
    answers.push_back(
        FakeCache::answer(request.prompt, request.images, kWeights, request.max_new_tokens));
  }
  return answers;
}

// Numbers 1 to 99 from a seed; prompts of equal seeds share their start.
inline std::vector<int32_t> tokens(uint64_t seed, int64_t num) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < num; ++i)
    ids.push_back(1 + static_cast<int32_t>(random_below(seed, static_cast<uint64_t>(i), 99)));
  return ids;
}

inline int64_t draw(uint64_t seed, uint64_t what, int64_t from, int64_t to) {
  return from + static_cast<int64_t>(
                    random_below(random_key({seed}), what, static_cast<uint64_t>(to - from + 1)));
}

inline std::vector<Request> draw_requests(uint64_t seed) {
  std::vector<Request> requests;
  const int64_t num = draw(seed, 1, 1, 14);
  for (int64_t i = 0; i < num; ++i) {
    const uint64_t one = random_key({seed, static_cast<uint64_t>(i)});
    const auto start = static_cast<uint64_t>(draw(one, 2, 0, 3));
    Request request{.prompt = tokens(start, draw(one, 3, 1, 40)),
                    .max_new_tokens = draw(one, 4, 1, 30)};
    if (draw(one, 5, 0, 1) == 1) {  // pads look alike, images do not
      const auto len = static_cast<int64_t>(request.prompt.size());
      const int64_t first = draw(one, 6, 0, len - 1), num_pads = draw(one, 7, 1, len - first);
      std::fill_n(request.prompt.begin() + first, num_pads, 50);
      request.images.push_back({first, num_pads, {static_cast<uint64_t>(draw(one, 8, 1, 2)), 0}});
    }
    if (i > 0 && draw(one, 9, 0, 3) == 0)
      request = requests[static_cast<size_t>(draw(one, 10, 0, i - 1))];
    requests.push_back(request);
  }
  return requests;
}

// A cache between the least that lets everybody finish alone and plenty.
inline Setting draw_setting(uint64_t seed, const std::vector<Request>& requests) {
  Setting setting;
  setting.blocks.block_len = draw(seed, 20, 1, 32);
  setting.blocks.prefix_cache = draw(seed, 21, 0, 3) > 0;
  setting.schedule.max_num_seqs = draw(seed, 22, 1, 8);
  setting.schedule.max_step_rows = draw(seed, 23, 1, 64);
  int64_t least = 1;
  for (const Request& request : requests) {
    const int64_t num_tokens =
        static_cast<int64_t>(request.prompt.size()) + request.max_new_tokens - 1;
    least = std::max(least, (num_tokens + setting.blocks.block_len - 1) / setting.blocks.block_len);
  }
  setting.blocks.num_blocks = least + draw(seed, 24, 0, 3) * draw(seed, 25, 0, 10);
  return setting;
}

inline Setting roomy(int64_t block_len = 4) {
  return {.schedule = {.max_num_seqs = 8, .max_step_rows = 64},
          .blocks = {.num_blocks = 200, .block_len = block_len}};
}

}  // namespace rematch::test
