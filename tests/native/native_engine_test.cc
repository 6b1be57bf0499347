// Answers of the native engine are those of transformers, on both runners.
#include "native/native_engine_fixture.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "engine/rollout/hf_engine.h"
#include "model/adapter.h"
#include "model/text/tokenizer.h"
#include "support/capture.h"

namespace rematch {

using test::engine_on;
using test::fresh_model;
using test::gib_of;
using test::golden;
using test::greedy;
using test::NativeEngineOn;
using test::responses;
using test::Runner;

INSTANTIATE_TEST_SUITE_P(Runners, NativeEngineOn, testing::Values(Runner::kAten, Runner::kCpu),
                         [](const auto& info) {
                           return info.param == Runner::kAten ? "Aten" : "Cpu";
                         });

TEST_P(NativeEngineOn, GivesTheGreedyIdsOfTransformers) {
  for (const NativeSettings& native : {NativeSettings{}, NativeSettings{.max_num_seqs = 1},
                                       NativeSettings{.max_num_seqs = 3, .max_step_rows = 5},
                                       NativeSettings{.block_len = 1, .max_step_rows = 17},
                                       NativeSettings{.block_len = 7, .prefix_cache = false}}) {
    NativeEngine native_engine = engine(greedy(native));
    const std::vector<Rollout> rollouts = native_engine.generate(golden().prompts, {});
    EXPECT_EQ(responses(rollouts), golden().plain)
        << native.max_num_seqs << " " << native.block_len;
    test::expect_logprobs(rollouts, golden().plain, golden().plain_logprobs);
    EXPECT_EQ(native_engine.num_near_ties(), 0) << "the golden was chosen without";
    EXPECT_EQ(native_engine.blocks()->num_available(), native_engine.blocks()->num_blocks());
    for (size_t i = 0; i < rollouts.size(); ++i) {
      EXPECT_EQ(rollouts[i].sample_id, golden().prompts[i].sample_id);
      EXPECT_EQ(rollouts[i].prompt_token_ids, golden().prompts[i].token_ids);
      EXPECT_EQ(rollouts[i].finish_reason, FinishReason::kLength);
    }
  }
}

TEST_P(NativeEngineOn, GivesThemWithARepetitionPenalty) {
  const std::vector<Rollout> rollouts = answer(greedy({}, 1.3));
  EXPECT_EQ(responses(rollouts), golden().penalised);
  test::expect_logprobs(rollouts, golden().penalised, golden().penalised_logprobs);
}

TEST_P(NativeEngineOn, GivesThemWhateverIsPreempted) {
  // The longest prompt and its answer take 168 tokens; the cache holds that and little more.
  for (const int block_len : {1, 2, 3, 5, 8, 13, 16, 21, 27, 32}) {
    NativeSettings native{.block_len = block_len};
    native.kv_cache_gib = gib_of((168 + block_len - 1) / block_len + 1, block_len);
    NativeEngine native_engine = engine(greedy(native));
    EXPECT_EQ(responses(native_engine.generate(golden().prompts, {})), golden().plain)
        << "blocks of " << block_len;
    EXPECT_GT(native_engine.stats().num_preemptions, 0) << "blocks of " << block_len;
  }
}

TEST_P(NativeEngineOn, TakesLimitsFarBeyondWhatIsAsked) {
  NativeSettings native{.max_num_seqs = std::numeric_limits<int>::max(), .kv_cache_gib = 1e-2};
  EXPECT_EQ(responses(answer(greedy(native))), golden().plain);
  GenerateOptions endless = greedy();
  endless.max_new_tokens = 100000;  // what is never written to takes no memory
  endless.stop_ids = {golden().plain[1][4]};
  EXPECT_EQ(responses(answer(endless, {golden().prompts[1]}))[0].size(), 4u);
}

TEST_P(NativeEngineOn, AnswersInOrderWhateverTheOrder) {
  const std::vector<Prompt> prompts(golden().prompts.rbegin(), golden().prompts.rend());
  const std::vector<std::vector<int>> expected(golden().plain.rbegin(), golden().plain.rend());
  EXPECT_EQ(responses(answer(greedy({.max_num_seqs = 3}), prompts)), expected);
}

TEST_P(NativeEngineOn, EndsAnswersAsTheOracleDoes) {
  GenerateOptions options = greedy({.max_num_seqs = 3});
  options.stop_ids = {golden().plain[0][3],
                      golden().plain[2][40],
                      golden().plain[5][70],
                      golden().plain[6][9],
                      golden().plain[1][0],
                      1 << 30,
                      -5};
  options.repeat_terminate = {
      .enabled = true, .min_new_tokens = 20, .max_consecutive_token_repeats = 2};
  options.max_new_tokens = 60;
  HfEngine oracle(test::rollout_model().model, test::rollout_model().tokenizer,
                  test::synthetic_pixels, options);
  const std::vector<Rollout> expected = oracle.generate(golden().prompts, {});
  std::map<FinishReason, int> reasons;
  NativeEngine native_engine = engine(options);
  for (int round = 0; round < 2; ++round) {
    const std::vector<Rollout> rollouts = native_engine.generate(golden().prompts, {});
    EXPECT_EQ(responses(rollouts), responses(expected));
    for (size_t i = 0; i < rollouts.size(); ++i) {
      EXPECT_EQ(rollouts[i].finish_reason, expected[i].finish_reason) << i;
      ++reasons[rollouts[i].finish_reason];
    }
  }
  EXPECT_EQ(reasons.size(), 3u) << "all three reasons are seen";
}

TEST_P(NativeEngineOn, HonoursMaxNewTokens) {
  for (const int max_new_tokens : {1, 2}) {
    GenerateOptions options = greedy();
    options.max_new_tokens = max_new_tokens;
    const std::vector<Rollout> rollouts = answer(options);
    for (size_t i = 0; i < rollouts.size(); ++i) {
      EXPECT_EQ(
          rollouts[i].response_token_ids,
          std::vector<int>(golden().plain[i].begin(), golden().plain[i].begin() + max_new_tokens));
    }
  }
}

TEST_P(NativeEngineOn, SamplesWhatTheOracleSamples) {
  GenerateOptions options = greedy();
  options.temperature = 1.0;
  options.top_p = 0.95;
  options.seed = 17;
  HfEngine oracle(test::rollout_model().model, test::rollout_model().tokenizer,
                  test::synthetic_pixels, options);
  const auto expected = responses(oracle.generate(golden().prompts, {}));
  EXPECT_EQ(responses(answer(options)), expected);
  options.native = {.max_num_seqs = 2, .block_len = 4};
  EXPECT_EQ(responses(answer(options)), expected);
  EXPECT_NE(expected, golden().plain);
}

TEST_P(NativeEngineOn, ComputesEqualPromptsAndTheirImagesOnce) {
  int num_loads = 0;
  const auto counting = [&](const ImageRef& image) {
    ++num_loads;
    return test::synthetic_pixels(image);
  };
  GenerateOptions options = greedy({.block_len = 4});
  options.max_new_tokens = 5;
  NativeEngine native_engine = engine(options, counting);
  const std::vector<Prompt> prompts(6, golden().prompts[4]);  // 34 tokens, two images
  const auto rollouts = responses(native_engine.generate(prompts, {}));
  for (const std::vector<int>& ids : rollouts)
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), golden().plain[4].begin()));
  EXPECT_EQ(num_loads, 2);
  EXPECT_EQ(native_engine.stats().num_images, 2);
  // Once all but its last token are known, a prompt costs that token alone.
  EXPECT_EQ(native_engine.stats().num_rows, 34 + 5 * 1 + 6 * 4);
  // A later call finds them too, and needs the tower no more.
  EXPECT_EQ(responses(native_engine.generate({golden().prompts[4]}, {})),
            std::vector<std::vector<int>>{rollouts[0]});
  EXPECT_EQ(native_engine.stats().num_images, 2);
}

TEST_P(NativeEngineOn, KnowsAnImageAgainUnderAnotherName) {
  const auto same = [](const ImageRef& image) {
    return test::synthetic_pixels({.path = "7", .grid_thw = image.grid_thw});
  };
  GenerateOptions options = greedy({.max_num_seqs = 1, .block_len = 4});
  options.max_new_tokens = 3;
  std::vector<Prompt> prompts(3, golden().prompts[0]);
  for (size_t i = 0; i < prompts.size(); ++i)
    prompts[i].images[0].path = "copy " + std::to_string(i);
  NativeEngine native_engine = engine(options, same);
  const auto rollouts = responses(native_engine.generate(prompts, {}));
  EXPECT_EQ(rollouts, (std::vector<std::vector<int>>(3, rollouts[0])));
  EXPECT_EQ(native_engine.stats().num_images, 1);
}

TEST_P(NativeEngineOn, TellsImagesApartByWhatTheyShow) {
  int64_t shift = 0;
  const auto shifting = [&](const ImageRef& image) {
    return test::synthetic_pixels(
        {.path = std::to_string(std::stoll(image.path) + shift), .grid_thw = image.grid_thw});
  };
  GenerateOptions options = greedy({.block_len = 1});
  options.max_new_tokens = 20;
  NativeEngine native_engine = engine(options, shifting);
  const auto first = responses(native_engine.generate(golden().prompts, {}));
  shift = 5;  // the files changed: same paths, other pixels
  const auto second = responses(native_engine.generate(golden().prompts, {}));
  HfEngine oracle(test::rollout_model().model, test::rollout_model().tokenizer, shifting, options);
  EXPECT_EQ(second, responses(oracle.generate(golden().prompts, {})));
  EXPECT_NE(first, second);
}

TEST_P(NativeEngineOn, ForgetsWhatOldWeightsComputed) {
  const auto model = fresh_model();
  GenerateOptions options = greedy({.block_len = 2});
  options.max_new_tokens = 30;
  NativeEngine native_engine = engine_on(GetParam(), model, options);
  native_engine.sync_weights(1);
  const auto before = responses(native_engine.generate(golden().prompts, {}));
  native_engine.sync_weights(1);
  EXPECT_NE(native_engine.blocks(), nullptr) << "the same weights: the cache stays";
  {
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : model->parameters()) parameter.tensor.mul_(1.05);
  }
  HfEngine oracle(model, test::rollout_model().tokenizer, test::synthetic_pixels, options);
  const auto expected = responses(oracle.generate(golden().prompts, {}));
  EXPECT_NE(expected, before);
  native_engine.sync_weights(2);
  EXPECT_EQ(responses(native_engine.generate(golden().prompts, {})), expected);
  // An evaluation never knows, so it always asks again.
  {
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : model->parameters()) parameter.tensor.mul_(1 / 1.05);
  }
  native_engine.sync_weights(kCurrentWeights);
  native_engine.generate({golden().prompts[0]}, {});
  native_engine.sync_weights(kCurrentWeights);
  EXPECT_EQ(native_engine.blocks(), nullptr);
}

TEST_P(NativeEngineOn, GivesItsMemoryBackAndWorksAfterwards) {
  NativeEngine native_engine = engine(greedy());
  native_engine.release();
  native_engine.generate({golden().prompts[0]}, {});
  EXPECT_NE(native_engine.blocks(), nullptr);
  native_engine.release();
  EXPECT_EQ(native_engine.blocks(), nullptr);
  EXPECT_EQ(responses(native_engine.generate(golden().prompts, {})), golden().plain);
}

TEST_P(NativeEngineOn, RollsOutWithTheMergedWeightsOfAnAdapter) {
  for (const bool use_dora : {false, true}) {
    const auto model = fresh_model();
    std::vector<std::string> names;
    for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
    const auto adapter = Adapter::create(*model, select_targets(model->description(), names, {}),
                                         {.lora = {.rank = 3, .use_dora = use_dora}});
    {
      const at::NoGradGuard no_grad;
      uint64_t key = 1;
      // B starts at zero, which would show nothing
      for (const NamedParameter& parameter : adapter->parameters()) {
        float* const values = parameter.tensor.data_ptr<float>();
        for (int64_t i = 0; i < parameter.tensor.numel(); ++i)
          values[i] += 0.05F * (static_cast<float>(random_uniform(key, i)) - 0.5F);
        ++key;
      }
    }
    GenerateOptions options = greedy();
    options.max_new_tokens = 40;
    HfEngine oracle(model, test::rollout_model().tokenizer, test::synthetic_pixels, options);
    const auto expected = responses(oracle.generate(golden().prompts, {}));
    NativeEngine native_engine = engine_on(GetParam(), model, options);
    EXPECT_EQ(responses(native_engine.generate(golden().prompts, {})), expected)
        << (use_dora ? "DoRA" : "LoRA");
    EXPECT_NE(expected[4],
              std::vector<int>(golden().plain[4].begin(), golden().plain[4].begin() + 40))
        << "the adapter does something";
  }
}

}  // namespace rematch
