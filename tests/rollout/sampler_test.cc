#include "engine/rollout/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Prompt prompt_of(int64_t sample_id, std::vector<int> token_ids = {0}) {
  return {.sample_id = sample_id,
          .epoch = 0,
          .token_ids = std::move(token_ids),
          .images = {},
          .where = "data.jsonl:3"};
}

// The next token of a fresh row.
int choose(std::vector<float> logits, const GenerateOptions& options,
           const Prompt& prompt = prompt_of(0)) {
  Sampler sampler(options);
  SamplerRow row(prompt, options, static_cast<int64_t>(logits.size()));
  return sampler.next(logits, row).token_id;
}

}  // namespace

TEST(Sampler, GreedyTakesTheFirstOfEqualMaxima) {
  EXPECT_EQ(choose({1, 3, 2, 3}, {}), 1);
  EXPECT_EQ(choose({-5, -5, -5}, {}), 0);
  EXPECT_EQ(choose({0.5f}, {}), 0);
}

TEST(Sampler, CountsNearTiesOfGreedyChoices) {
  GenerateOptions options;
  Sampler sampler(options);
  SamplerRow row(prompt_of(0), options, 3);
  const auto feed = [&](std::vector<float> logits) { sampler.next(logits, row); };
  feed({10, 9.9f, 0});
  feed({10, 0, -20000});
  EXPECT_EQ(sampler.num_near_ties(), 0);
  feed({10, 10, 0});
  feed({9.99995f, 10, 0});
  EXPECT_EQ(sampler.num_near_ties(), 2);
  feed({10, 9.9f, -20000});  // the largest magnitude is what counts
  EXPECT_EQ(sampler.num_near_ties(), 3);
}

TEST(Sampler, ProcessesLogitsAsTransformersDoes) {
  int num_cases = 0;
  for (const std::string& line :
       split(read_file(test::source_path("tests/golden/rollout_processors.jsonl")), '\n')) {
    if (line.empty()) continue;
    const Json golden = parse_json(line, "golden");
    const Json& given = golden["options"];
    GenerateOptions options;
    options.temperature = given.value("temperature", 0.0);
    options.top_k = given.value("top_k", 0);
    options.top_p = given.value("top_p", 1.0);
    options.repetition_penalty = given.value("repetition_penalty", 1.0);
    auto logits = golden["logits"].get<std::vector<float>>();
    Sampler sampler(options);
    const SamplerRow row(prompt_of(0, golden["seen"].get<std::vector<int>>()), options,
                         static_cast<int64_t>(logits.size()));
    sampler.process(logits, row);
    for (size_t i = 0; i < logits.size(); ++i) {
      const Json& expected = golden["scores"][i];
      if (expected.is_null()) {
        EXPECT_EQ(logits[i], -kInf) << given.dump() << " token " << i;
      } else {
        EXPECT_EQ(logits[i], expected.get<float>()) << given.dump() << " token " << i;
      }
    }
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 22);
}

TEST(Sampler, PenalisesGeneratedIdsTooAndEachOnce) {
  GenerateOptions options;
  options.repetition_penalty = 2.0;
  Sampler sampler(options);
  // 99 is not in the vocabulary: nothing to penalise
  SamplerRow row(prompt_of(0, {3, 3, 3, 99}), options, 4);
  const auto next = [&](std::vector<float> logits) { return sampler.next(logits, row).token_id; };
  EXPECT_EQ(next({1, 3, 2, 5}), 1);         // 5/2 < 3
  EXPECT_EQ(next({1, 3, 2, 5}), 3);         // 3/2, 5/2 = 2.5
  EXPECT_EQ(next({-1, -1.5f, -2, -1}), 0);  // negative logits are multiplied
}

TEST(Sampler, DependsOnSeedEpochSampleAndPositionOnly) {
  GenerateOptions options;
  options.temperature = 1;
  options.seed = 5;
  const std::vector<float> flat(500, 0.0f);
  const auto sequence = [&](const GenerateOptions& with, const Prompt& prompt) {
    Sampler sampler(with);
    SamplerRow row(prompt, with, 500);
    std::vector<int> ids;
    for (int i = 0; i < 20; ++i) {
      std::vector<float> logits = flat;
      ids.push_back(sampler.next(logits, row).token_id);
    }
    return ids;
  };
  const std::vector<int> base = sequence(options, prompt_of(1));
  EXPECT_EQ(base, sequence(options, prompt_of(1, {7, 8, 9})));
  EXPECT_NE(base, sequence(options, prompt_of(2)));
  Prompt later = prompt_of(1);
  later.epoch = 1;
  EXPECT_NE(base, sequence(options, later));
  GenerateOptions other_seed = options;
  other_seed.seed = 6;
  EXPECT_NE(base, sequence(other_seed, prompt_of(1)));
  EXPECT_GT(std::set<int>(base.begin(), base.end()).size(), 10u) << "positions draw apart";
}

TEST(Sampler, DrawsFromTheSoftmaxOfWhatIsKept) {
  GenerateOptions options;
  options.temperature = 0.5;
  options.top_k = 3;
  const std::vector<float> logits{0.0f, 1.0f, 0.5f, -2.0f, 0.8f};
  std::vector<int> counts(5);
  constexpr int kDraws = 60000;
  Sampler sampler(options);
  for (int i = 0; i < kDraws; ++i) {
    SamplerRow row(prompt_of(i), options, 5);
    std::vector<float> copy = logits;
    ++counts[static_cast<size_t>(sampler.next(copy, row).token_id)];
  }
  const double total = std::exp(2.0) + std::exp(1.0) + std::exp(1.6);
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[3], 0);
  EXPECT_NEAR(counts[1] / double{kDraws}, std::exp(2.0) / total, 0.01);
  EXPECT_NEAR(counts[2] / double{kDraws}, std::exp(1.0) / total, 0.01);
  EXPECT_NEAR(counts[4] / double{kDraws}, std::exp(1.6) / total, 0.01);
}

TEST(Sampler, SurvivesAVocabularyWithOneLikelyToken) {
  GenerateOptions options;
  options.temperature = 1;
  options.top_p = 0.99;
  std::vector<float> logits(1000, -100.0f);
  logits[700] = 50;
  EXPECT_EQ(choose(logits, options), 700);
}

TEST(Sampler, TreatsAColdThatOverflowsAsGreedy) {
  GenerateOptions options;
  options.temperature = 1e-42;
  options.top_p = 0.9;
  EXPECT_EQ(choose({1, 30000, -30000, 30000}, options), 1);
  options.temperature = 1e-300;
  EXPECT_EQ(choose({1, 2, 0}, options), 1);
}

TEST(Sampler, NamesTheSampleOfALogitThatIsNotFinite) {
  for (const float bad : {std::nanf(""), kInf, -kInf}) {
    const UserError error = test::catch_user_error([&] { choose({0, 1, bad}, {}, prompt_of(41)); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems().front().where, "sample 41 (data.jsonl:3)");
    EXPECT_NE(error.problems().front().what.find("token 2"), std::string::npos);
  }
}

TEST(SamplingOptions, AreCheckedByName) {
  const auto where_of = [](void (*change)(GenerateOptions&)) {
    GenerateOptions options;
    change(options);
    const UserError error = test::catch_user_error([&] { check_sampling_options(options); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.problems().front().where;
  };
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.temperature = -0.1; }), "temperature");
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.temperature = std::nan(""); }), "temperature");
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.top_p = 1.5; }), "top_p");
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.top_k = -1; }), "top_k");
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.repetition_penalty = 0; }), "repetition_penalty");
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.max_new_tokens = 0; }), "max_new_tokens");
  EXPECT_EQ(where_of([](GenerateOptions& o) { o.batch_size = 0; }), "rollout_generate_batch_size");
}

TEST(Sampler, GivesTheLogProbabilityUnderTheRawLogits) {
  const std::vector<float> logits{1, 2, -3, 4.5f, 0.25f};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  Prompt prompt = prompt_of(1, {3, 4});
  for (const GenerationSettings& settings : std::initializer_list<GenerationSettings>{
           {},
           {.repetition_penalty = 1.7},
           {.temperature = 0.4},
           {.temperature = 1, .top_p = 0.9},
           {.temperature = 2.5, .top_k = 3, .repetition_penalty = 1.3}}) {
    Sampler sampler({settings, 7, {}});
    SamplerRow row(prompt, {settings, 7, {}}, 5);
    for (int i = 0; i < 20; ++i) {
      std::vector<float> copy = logits;
      const ChosenToken token = sampler.next(copy, row);
      EXPECT_NEAR(token.logprob, logits[static_cast<size_t>(token.token_id)] - std::log(sum), 1e-6)
          << settings.temperature << " " << settings.repetition_penalty;
    }
  }
}

TEST(Sampler, NamesTheSampleOfALogProbabilityThatIsNotFinite) {
  const GenerateOptions options{{.temperature = 3e38}};
  Sampler sampler(options);
  SamplerRow row(prompt_of(41), options, 2);
  const UserError error = test::catch_user_error([&] {
    for (int i = 0; i < 100; ++i) {
      std::vector<float> logits{3e38f, -3e38f};
      EXPECT_EQ(sampler.next(logits, row).logprob, 0.0f) << "of the likely token";
    }
  });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems().front().where, "sample 41 (data.jsonl:3)");
}

}  // namespace rematch
