// The CPU engine's promise: a prompt's ids and the bits of its logits are the same whatever shares
// a step with it.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <map>

#include "base/random.h"
#include "engine/rollout/native/cpu/runner.h"
#include "engine/rollout/native/native_engine.h"
#include "rollout/generate_golden.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr int kNewTokens = 10;

// Result of a schedule for a prompt.
struct Answer {
  std::vector<int> token_ids;
  std::vector<float> token_logprobs;
  std::vector<uint64_t> logits;  ///< hash of the bits of each row
  bool operator==(const Answer&) const = default;
};

struct Outcome {
  std::map<int64_t, Answer> answers;
  NativeEngine::Stats stats;
};

const std::vector<Prompt>& golden_prompts() {
  static const std::vector<Prompt> prompts =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json")).prompts;
  return prompts;
}

Outcome answer(const std::vector<Prompt>& prompts, const NativeSettings& native,
               int num_calls = 1) {
  NativeEngine engine({.model = test::rollout_model().model,
                       .tokenizer = test::rollout_model().tokenizer,
                       .pixels = test::synthetic_pixels,
                       .runner = make_cpu_runner(test::rollout_model().model),
                       .encoder = make_cpu_encoder(test::rollout_model().model)},
                      {{.max_new_tokens = kNewTokens, .native = native}});
  Outcome outcome;
  for (int call = 0; call < num_calls; ++call) {
    std::vector<std::vector<uint64_t>> logits(prompts.size());
    engine.observe_logits([&](size_t prompt_idx, size_t position, std::span<const float> row) {
      logits[prompt_idx].resize(position + 1);
      logits[prompt_idx][position] = XXH3_64bits(row.data(), row.size_bytes());
    });
    const std::vector<Rollout> rollouts = engine.generate(prompts, {});
    for (size_t i = 0; i < prompts.size(); ++i) {
      const Answer given{rollouts[i].response_token_ids, rollouts[i].token_logprobs, logits[i]};
      const auto [at, is_new] = outcome.answers.emplace(prompts[i].sample_id, given);
      EXPECT_TRUE(at->second == given) << "sample " << prompts[i].sample_id << ", asked twice";
    }
    EXPECT_EQ(engine.blocks()->num_available(), engine.blocks()->num_blocks());
  }
  outcome.stats = engine.stats();
  return outcome;
}

int draw(uint64_t seed, uint64_t what, int from, int to) {
  return from + static_cast<int>(
                    random_below(random_key({seed}), what, static_cast<uint64_t>(to - from + 1)));
}

// Some of the prompts, some of them more than once, in any order.
std::vector<Prompt> draw_prompts(uint64_t seed) {
  std::vector<Prompt> prompts;
  const int num = draw(seed, 1, 1, 10);
  for (int i = 0; i < num; ++i)
    prompts.push_back(
        golden_prompts()[static_cast<size_t>(draw(seed, 100 + static_cast<uint64_t>(i), 0, 7))]);
  return prompts;
}

NativeSettings draw_setting(uint64_t seed) {
  NativeSettings native{.max_num_seqs = draw(seed, 2, 1, 6),
                        .block_len = draw(seed, 3, 1, 32),
                        .max_step_rows = draw(seed, 4, 1, 40)};
  native.prefix_cache = draw(seed, 5, 0, 3) > 0;
  native.drafts = draw(seed, 9, 0, 3) > 0;
  // little more than one sequence needs: 51 tokens, 3 layers, keys and values, 2 heads of 16 floats
  if (draw(seed, 6, 0, 2) > 0) {
    const int num_blocks = (51 + native.block_len - 1) / native.block_len + draw(seed, 7, 0, 2);
    native.kv_cache_gib = (num_blocks + 0.5) * native.block_len * 3 * 2 * 2 * 16 * 4 / (1 << 30);
  }
  return native;
}

}  // namespace

TEST(BatchInvariance, FiveHundredRandomSchedulesGiveTheSameBits) {
  std::map<int64_t, Answer> alone;
  for (const Prompt& prompt : golden_prompts()) {
    const Outcome outcome =
        answer({prompt}, {.max_num_seqs = 1, .prefix_cache = false, .drafts = false});
    alone[prompt.sample_id] = outcome.answers.at(prompt.sample_id);
  }
  int64_t num_preemptions = 0, num_found_tokens = 0, num_drafts = 0, num_right_drafts = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const std::vector<Prompt> prompts = draw_prompts(seed);
    // threads wait for each other on a busy machine: seldom is enough
    at::set_num_threads(seed % 50 == 0 ? draw(seed, 8, 2, 3) : 1);
    const Outcome outcome = answer(prompts, draw_setting(seed), 2);
    for (const auto& [sample_id, given] : outcome.answers) {
      ASSERT_EQ(given.token_ids, alone.at(sample_id).token_ids)
          << "sample " << sample_id << " of schedule " << seed;
      ASSERT_EQ(given.token_logprobs, alone.at(sample_id).token_logprobs)
          << "sample " << sample_id << " of schedule " << seed;
      ASSERT_EQ(given.logits, alone.at(sample_id).logits)
          << "sample " << sample_id << " of schedule " << seed;
    }
    num_preemptions += outcome.stats.num_preemptions;
    num_found_tokens += outcome.stats.num_found_tokens;
    num_drafts += outcome.stats.num_drafts;
    num_right_drafts += outcome.stats.num_right_drafts;
  }
  at::set_num_threads(1);
  EXPECT_GT(num_preemptions, 100) << "the draw must force some";
  EXPECT_GT(num_found_tokens, 1000);
  EXPECT_GT(num_right_drafts, 1000);
  EXPECT_GT(num_drafts, num_right_drafts + 100) << "some must be wrong";
}

TEST(BatchInvariance, TheNumberOfThreadsChangesNoBit) {
  const Outcome one = answer(golden_prompts(), {});
  for (const int num_threads : {2, 3, 5}) {
    at::set_num_threads(num_threads);
    EXPECT_TRUE(answer(golden_prompts(), {}).answers == one.answers) << num_threads << " threads";
  }
  at::set_num_threads(1);
}

}  // namespace rematch
