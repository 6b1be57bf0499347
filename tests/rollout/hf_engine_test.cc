#include "engine/rollout/hf_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/interrupt.h"
#include "engine/rollout/padded_batch.h"
#include "model/text/tokenizer.h"
#include "rollout/generate_golden.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

using test::responses;

const test::GenerateGolden& golden() {
  static const test::GenerateGolden loaded =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json"));
  return loaded;
}

HfEngine engine_with(const GenerateOptions& options,
                     const PixelGetter& pixels = test::synthetic_pixels) {
  return HfEngine(test::rollout_model().model, test::rollout_model().tokenizer, pixels, options);
}

GenerateOptions greedy(int batch_size, double repetition_penalty = 1.0) {
  return {{.max_new_tokens = golden().new_tokens,
           .repetition_penalty = repetition_penalty,
           .batch_size = batch_size}};
}

std::vector<Rollout> answer(const GenerateOptions& options,
                            const std::vector<Prompt>& prompts = golden().prompts) {
  return engine_with(options).generate(prompts, {});
}

}  // namespace

TEST(HfEngine, GivesTheGreedyIdsOfTransformers) {
  for (const int batch_size : {1, 8}) {
    HfEngine engine = engine_with(greedy(batch_size));
    const std::vector<Rollout> rollouts = engine.generate(golden().prompts, {});
    EXPECT_EQ(responses(rollouts), golden().plain) << "batch " << batch_size;
    test::expect_logprobs(rollouts, golden().plain, golden().plain_logprobs);
    EXPECT_EQ(engine.num_near_ties(), 0) << "the golden was chosen without";
  }
}

TEST(HfEngine, GivesTheGreedyIdsOfTransformersWithARepetitionPenalty) {
  for (const int batch_size : {1, 8}) {
    const std::vector<Rollout> rollouts = answer(greedy(batch_size, 1.3));
    EXPECT_EQ(responses(rollouts), golden().penalised) << "batch " << batch_size;
    test::expect_logprobs(rollouts, golden().penalised, golden().penalised_logprobs);
  }
}

TEST(HfEngine, AnswersInOrderWhateverTheBatch) {
  std::vector<Prompt> prompts = golden().prompts;
  std::reverse(prompts.begin(), prompts.end());
  std::vector<std::vector<int>> expected = golden().plain;
  std::reverse(expected.begin(), expected.end());
  for (const int batch_size : {3, 5, 100}) {
    const std::vector<Rollout> rollouts = answer(greedy(batch_size), prompts);
    EXPECT_EQ(responses(rollouts), expected) << "batch " << batch_size;
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(rollouts[i].sample_id, prompts[i].sample_id);
      EXPECT_EQ(rollouts[i].prompt_token_ids, prompts[i].token_ids);
      EXPECT_EQ(rollouts[i].finish_reason, FinishReason::kLength);
    }
  }
}

// spec: microbatch-01 microbatch-03
TEST(HfEngine, DecodesTheSamplesOfABatchInOneCall) {
  const std::vector<Prompt>& prompts = golden().prompts;
  std::vector<std::string> events;
  const PixelGetter watched = [&](const ImageRef& image) {
    events.push_back("image");
    return test::synthetic_pixels(image);
  };
  HfEngine engine = engine_with(greedy(static_cast<int>(prompts.size())), watched);
  const std::vector<Rollout> rollouts = engine.generate(
      prompts, [&](int num_done) { events.push_back("done " + std::to_string(num_done)); });

  // All images are read before the first answer exists, and all answers are done at once.
  ASSERT_GT(events.size(), 2u);
  EXPECT_EQ(events.back(), "done " + std::to_string(prompts.size()));
  EXPECT_EQ(std::count(events.begin(), events.end(), "image"), std::ssize(events) - 1)
      << "one call: no answer is done before the others";
  EXPECT_EQ(responses(rollouts), golden().plain);
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(rollouts[i].prompt_token_ids, prompts[i].token_ids);
}

// spec: pack-03 pack-14
TEST(HfEngine, ARowOfABatchIsPaddingAndThenOnePrompt) {
  const std::vector<Prompt>& prompts = golden().prompts;
  const PaddedBatch batch =
      pad_prompts(prompts, *test::rollout_model().model, test::synthetic_pixels);
  ASSERT_EQ(batch.token_ids_BP.size(0), std::ssize(prompts));
  const int64_t num_columns = batch.num_columns();
  const at::Tensor token_ids = batch.token_ids_BP.contiguous();
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int64_t> expected(static_cast<size_t>(batch.paddings[i]), 0);
    expected.insert(expected.end(), prompts[i].token_ids.begin(), prompts[i].token_ids.end());
    const int64_t* row =
        token_ids.const_data_ptr<int64_t>() + static_cast<int64_t>(i) * num_columns;
    EXPECT_EQ(std::vector<int64_t>(row, row + num_columns), expected) << "row " << i;
  }
}

TEST(HfEngine, RowsThatStopLeaveTheOthersAlone) {
  // Ids from the middle of some answers as stop ids: rows end at different steps, so the cache is
  // compacted more than once.
  GenerateOptions options = greedy(8);
  options.stop_ids = {golden().plain[0][3], golden().plain[2][40], golden().plain[5][70],
                      golden().plain[6][9]};
  int num_stopped = 0;
  std::set<size_t> lengths;
  for (const int batch_size : {1, 4, 8}) {
    options.batch_size = batch_size;
    const std::vector<Rollout> rollouts = answer(options);
    for (size_t i = 0; i < rollouts.size(); ++i) {
      const std::vector<int>& full = golden().plain[i];
      const auto stop = std::find_first_of(full.begin(), full.end(), options.stop_ids.begin(),
                                           options.stop_ids.end());
      EXPECT_EQ(rollouts[i].response_token_ids, std::vector<int>(full.begin(), stop))
          << "row " << i << " batch " << batch_size;
      EXPECT_EQ(rollouts[i].finish_reason,
                stop == full.end() ? FinishReason::kLength : FinishReason::kStop);
      num_stopped += stop == full.end() ? 0 : 1;
      lengths.insert(rollouts[i].response_token_ids.size());
    }
  }
  EXPECT_GE(num_stopped, 3 * 4);
  EXPECT_GE(lengths.size(), 4u);
}

TEST(HfEngine, StopsAtOnceWithAnEmptyAnswer) {
  GenerateOptions options = greedy(1);
  options.stop_ids = {golden().plain[1][0], 1 << 30, -5};
  const std::vector<Rollout> rollouts = answer(options, {golden().prompts[1]});
  EXPECT_TRUE(rollouts[0].response_token_ids.empty());
  EXPECT_EQ(rollouts[0].finish_reason, FinishReason::kStop);
}

TEST(HfEngine, HonoursMaxNewTokens) {
  for (const int max_new_tokens : {1, 2}) {
    GenerateOptions options = greedy(8);
    options.max_new_tokens = max_new_tokens;
    const std::vector<Rollout> rollouts = answer(options);
    for (size_t i = 0; i < rollouts.size(); ++i) {
      EXPECT_EQ(
          rollouts[i].response_token_ids,
          std::vector<int>(golden().plain[i].begin(), golden().plain[i].begin() + max_new_tokens));
      EXPECT_EQ(rollouts[i].finish_reason, FinishReason::kLength);
    }
  }
}

TEST(HfEngine, GrowsItsCacheBeyondTheFirstReservation) {
  GenerateOptions options = greedy(3);
  options.max_new_tokens = 400;
  const std::vector<Prompt> prompts(golden().prompts.begin(), golden().prompts.begin() + 3);
  const auto together = responses(answer(options, prompts));
  options.batch_size = 1;
  const auto alone = responses(answer(options, prompts));
  for (size_t i = 0; i < prompts.size(); ++i) {
    ASSERT_EQ(together[i].size(), 400u);
    EXPECT_TRUE(
        std::equal(golden().plain[i].begin(), golden().plain[i].end(), together[i].begin()));
    EXPECT_EQ(together[i], alone[i]);
  }
}

TEST(HfEngine, SamplesTheSameWhateverTheBatch) {
  GenerateOptions options = greedy(1);
  options.temperature = 1.0;
  options.top_p = 0.95;
  options.seed = 17;
  const auto alone = responses(answer(options));
  options.batch_size = 8;
  EXPECT_EQ(responses(answer(options)), alone);
  EXPECT_NE(alone, golden().plain);
  options.seed = 18;
  EXPECT_NE(responses(answer(options)), alone);
  // Order in the batch does not matter either; the epoch does.
  options.seed = 17;
  std::vector<Prompt> prompts(golden().prompts.rbegin(), golden().prompts.rend());
  const auto reversed = responses(answer(options, prompts));
  EXPECT_EQ(std::vector<std::vector<int>>(reversed.rbegin(), reversed.rend()), alone);
  for (Prompt& prompt : prompts) prompt.epoch = 1;
  EXPECT_NE(responses(answer(options, prompts)), reversed);
}

TEST(HfEngine, TheRepeatGuardEndsItsRowOnly) {
  GenerateOptions options = greedy(8);
  options.repeat_terminate = {
      .enabled = true, .min_new_tokens = 20, .max_consecutive_token_repeats = 2};
  const std::vector<Rollout> rollouts = answer(options);
  int num_ended = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const std::vector<int>& full = golden().plain[i];
    size_t expected = full.size();
    for (size_t n = 20; n <= full.size(); ++n) {
      if (full[n - 1] != full[n - 2]) continue;
      expected = n;
      break;
    }
    const std::vector<int> kept(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(expected));
    EXPECT_EQ(rollouts[i].response_token_ids, kept) << "row " << i;
    const bool ended = expected < full.size();
    EXPECT_EQ(rollouts[i].finish_reason, ended ? FinishReason::kRepeat : FinishReason::kLength);
    num_ended += ended ? 1 : 0;
  }
  EXPECT_GT(num_ended, 0);
  EXPECT_LT(num_ended, 8);
}

TEST(HfEngine, ReportsProgressAndTakesAnEmptyList) {
  EXPECT_TRUE(answer(greedy(4), {}).empty());
  GenerateOptions options = greedy(3);
  options.max_new_tokens = 2;
  std::vector<int> seen;
  engine_with(options).generate(golden().prompts, [&](int num_done) { seen.push_back(num_done); });
  EXPECT_EQ(seen, (std::vector<int>{3, 6, 8}));
}

TEST(HfEngine, LeavesNoGradientsBehind) {
  const auto& model = *test::rollout_model().model;
  const at::Tensor weight = model.parameters().front().tensor;
  weight.requires_grad_(true);
  GenerateOptions options = greedy(2);
  options.max_new_tokens = 3;
  answer(options, {golden().prompts[0], golden().prompts[1]});
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_TRUE(at::GradMode::is_enabled());
  weight.requires_grad_(false);
}

TEST(HfEngine, StopsBetweenTokensWhenInterrupted) {
  HfEngine engine = engine_with(greedy(8));
  set_interrupt_requested(true);
  EXPECT_THROW(engine.generate(golden().prompts, {}), Interrupted);
  set_interrupt_requested(false);
  EXPECT_EQ(engine.generate({golden().prompts[1]}, {})[0].response_token_ids, golden().plain[1])
      << "and works afterwards";
}

TEST(HfEngine, RefusesPromptsThatDoNotFitTheirImages) {
  const auto refused = [](const Prompt& prompt,
                          const PixelGetter& pixels = test::synthetic_pixels) {
    const UserError error =
        test::catch_user_error([&] { engine_with(greedy(1), pixels).generate({prompt}, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems().front().where, "sample 0 (golden)");
    return error.problems().front().what;
  };
  Prompt prompt = golden().prompts[0];
  prompt.images.clear();
  EXPECT_NE(refused(prompt).find("6 pads"), std::string::npos);
  prompt = golden().prompts[0];
  prompt.images[0].grid_thw = {1, 4, 4};
  EXPECT_NE(refused(prompt).find("need 4"), std::string::npos);
  prompt = golden().prompts[0];
  prompt.token_ids[0] = 1368;
  EXPECT_NE(refused(prompt).find("1368"), std::string::npos);
  prompt.token_ids[0] = -1;
  refused(prompt);
  prompt.token_ids.clear();
  refused(prompt);
  const auto other_size = [](const ImageRef& image) {
    return test::synthetic_pixels({.path = image.path, .grid_thw = {1, 6, 4}});
  };
  EXPECT_NE(refused(golden().prompts[0], other_size).find("6x4"), std::string::npos);
}

TEST(HfEngine, NamesTheSampleWhoseLogitsAreNotFinite) {
  const auto broken = Model::load(test::source_path("tests/golden/rollout_model"), {});
  broken->parameter("lm_head.weight").fill_(std::numeric_limits<float>::quiet_NaN());
  HfEngine engine(broken, test::rollout_model().tokenizer, test::synthetic_pixels, greedy(2));
  const UserError error =
      test::catch_user_error([&] { engine.generate({golden().prompts[1]}, {}); });
  EXPECT_EQ(error.problems().front().where, "sample 1 (golden)");
}

TEST(HfEngine, DecodesInBfloat16) {
  ModelOptions half;
  half.dtype = at::kBFloat16;
  const auto model = Model::load(test::source_path("tests/golden/rollout_model"), half);
  HfEngine engine(model, test::rollout_model().tokenizer, test::synthetic_pixels, greedy(8));
  const std::vector<Rollout> rollouts = engine.generate(golden().prompts, {});
  int num_first_equal = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    ASSERT_EQ(rollouts[i].response_token_ids.size(), static_cast<size_t>(golden().new_tokens));
    num_first_equal += rollouts[i].response_token_ids[0] == golden().plain[i][0] ? 1 : 0;
  }
  EXPECT_GE(num_first_equal, 6) << "rounding may turn a few first tokens, not most";
}

}  // namespace rematch
