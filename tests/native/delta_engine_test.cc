// The native engine on a model whose layers mix the delta rule and attention: answers of `hf`, and
// the same bits for every schedule.
#include <ATen/Parallel.h>
#include <xxhash.h>

#include <iostream>
#include <map>

#include "base/random.h"
#include "engine/rollout/hf_engine.h"
#include "native/native_engine_fixture.h"

namespace rematch {
namespace {

using test::engine_on;
using test::golden;
using test::responses;
using test::Runner;

std::shared_ptr<Model> load(at::ScalarType dtype = at::kFloat) {
  at::set_num_threads(1);
  return Model::load(test::source_path("tests/golden/model/delta_tied"), {.dtype = dtype});
}

const std::shared_ptr<Model>& model() {
  static const std::shared_ptr<Model> loaded = load();
  return loaded;
}

GenerateOptions options_with(const NativeSettings& native, int max_new_tokens = 60) {
  return {{.max_new_tokens = max_new_tokens, .native = native}};
}

std::vector<std::vector<int>> answer_of_hf(const std::shared_ptr<const Model>& weights,
                                           const GenerateOptions& options) {
  HfEngine oracle(weights, test::rollout_model().tokenizer, test::synthetic_pixels, options);
  return responses(oracle.generate(golden().prompts, {}));
}

// Every prompt several times, side by side and far apart.
std::vector<Prompt> several_of_each(size_t times) {
  std::vector<Prompt> prompts;
  for (const Prompt& prompt : golden().prompts) prompts.insert(prompts.end(), times, prompt);
  prompts.insert(prompts.end(), golden().prompts.begin(), golden().prompts.end());
  return prompts;
}

class DeltaEngineOn : public testing::TestWithParam<Runner> {};

INSTANTIATE_TEST_SUITE_P(Runners, DeltaEngineOn, testing::Values(Runner::kAten, Runner::kCpu),
                         [](const auto& info) {
                           return info.param == Runner::kAten ? "Aten" : "Cpu";
                         });

}  // namespace

TEST_P(DeltaEngineOn, GivesTheGreedyIdsOfHf) {
  const auto wanted = answer_of_hf(model(), options_with({}));
  for (const NativeSettings& native : {NativeSettings{}, NativeSettings{.max_num_seqs = 1},
                                       NativeSettings{.max_num_seqs = 3, .max_step_rows = 5},
                                       NativeSettings{.block_len = 1, .max_step_rows = 17},
                                       NativeSettings{.block_len = 7, .prefix_cache = false}}) {
    NativeEngine engine = engine_on(GetParam(), model(), options_with(native));
    EXPECT_EQ(responses(engine.generate(golden().prompts, {})), wanted)
        << native.max_num_seqs << " " << native.block_len;
    EXPECT_EQ(engine.num_near_ties(), 0);
    EXPECT_EQ(engine.blocks()->num_available(), engine.blocks()->num_blocks());
    EXPECT_EQ(engine.states()->num_used(), 0);
  }
}

TEST_P(DeltaEngineOn, SamplesWhatHfSamples) {
  GenerateOptions options = options_with({.max_num_seqs = 3});
  options.temperature = 1.0;
  options.top_p = 0.95;
  options.seed = 17;
  NativeEngine engine = engine_on(GetParam(), model(), options);
  EXPECT_EQ(responses(engine.generate(golden().prompts, {})), answer_of_hf(model(), options));
}

TEST_P(DeltaEngineOn, ForksTheStateOfAPromptThatOccursAgain) {
  const std::vector<Prompt> prompts = several_of_each(3);
  const auto once = answer_of_hf(model(), options_with({}, 20));
  for (const int max_num_seqs : {1, 2, 5, 64}) {
    NativeEngine engine =
        engine_on(GetParam(), model(), options_with({.max_num_seqs = max_num_seqs}, 20));
    const auto given = responses(engine.generate(prompts, {}));
    for (size_t i = 0; i < given.size(); ++i)
      EXPECT_EQ(given[i], once[i < 24 ? i / 3 : i - 24]) << i << ", " << max_num_seqs;
    EXPECT_GT(engine.stats().num_found_tokens, 0) << max_num_seqs;
    EXPECT_LE(engine.stats().num_images, 6) << "each image once, or twice if forgotten";
  }
}

TEST_P(DeltaEngineOn, GivesThemWhateverIsPreempted) {
  const auto wanted = answer_of_hf(model(), options_with({}));
  // The longest prompt and answer take 101 tokens; three states, and blocks for little more.
  NativeSettings native{.block_len = 8};
  const auto runner =
      GetParam() == Runner::kCpu ? make_cpu_runner(model()) : make_aten_runner(model());
  native.kv_cache_gib =
      static_cast<double>(3 * runner->state_bytes() + 3 * 13 * runner->block_bytes(8) + 100) /
      (1 << 30);
  NativeEngine engine = engine_on(GetParam(), model(), options_with(native));
  EXPECT_EQ(responses(engine.generate(golden().prompts, {})), wanted);
  EXPECT_LE(engine.states()->num_slots(), 3);
}

TEST_P(DeltaEngineOn, ForgetsWhatOldWeightsComputed) {
  const std::shared_ptr<Model> changing = load();
  NativeEngine engine = engine_on(GetParam(), changing, options_with({}, 20));
  const std::vector<Prompt> prompts = several_of_each(2);
  engine.sync_weights(1);
  const auto before = responses(engine.generate(prompts, {}));
  {
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : changing->parameters())
      at::Tensor(parameter.tensor).mul_(1.2);
  }
  engine.sync_weights(2);
  const auto after = responses(engine.generate(prompts, {}));
  EXPECT_NE(before, after);
  NativeEngine fresh = engine_on(GetParam(), changing, options_with({}, 20));
  EXPECT_EQ(responses(fresh.generate(prompts, {})), after);
  engine.release();
  EXPECT_EQ(engine.states(), nullptr);
  EXPECT_EQ(responses(engine.generate(prompts, {})), after) << "released in between";
}

TEST_P(DeltaEngineOn, DecodesInBfloat16) {
  const std::shared_ptr<Model> half = load(at::kBFloat16);
  NativeEngine engine = engine_on(GetParam(), half, options_with({}));
  const auto given = responses(engine.generate(golden().prompts, {})),
             wanted = answer_of_hf(half, options_with({}));
  int num_first_equal = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    ASSERT_EQ(given[i].size(), 60u);
    num_first_equal += given[i][0] == wanted[i][0] ? 1 : 0;
  }
  EXPECT_GE(num_first_equal, 6) << "rounding may turn a few first tokens, not most";
}

namespace {

// Ids and the bits of logits of each prompt, by sample.
using Bits = std::map<int64_t, std::pair<std::vector<int>, std::vector<uint64_t>>>;

struct Outcome {
  Bits bits;
  NativeEngine::Stats stats;
};

Outcome answer_on_cpu(const std::vector<Prompt>& prompts, const NativeSettings& native) {
  NativeEngine engine = engine_on(Runner::kCpu, model(), options_with(native, 24));
  Outcome outcome;
  for (int call = 0; call < 2; ++call) {
    std::vector<std::vector<uint64_t>> logits(prompts.size());
    engine.observe_logits([&](size_t prompt_idx, size_t position, std::span<const float> row) {
      logits[prompt_idx].resize(position + 1);
      logits[prompt_idx][position] = XXH3_64bits(row.data(), row.size_bytes());
    });
    const auto ids = responses(engine.generate(prompts, {}));
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto [at, is_new] =
          outcome.bits.emplace(prompts[i].sample_id, std::pair(ids[i], logits[i]));
      EXPECT_TRUE(at->second == std::pair(ids[i], logits[i])) << prompts[i].sample_id;
    }
  }
  outcome.stats = engine.stats();
  return outcome;
}

}  // namespace

TEST(DeltaInvariance, RandomSchedulesAndDraftsGiveTheSameBits) {
  const auto draw = [](uint64_t seed, uint64_t what, int from, int to) {
    return from + static_cast<int>(
                      random_below(random_key({seed}), what, static_cast<uint64_t>(to - from + 1)));
  };
  Bits alone;
  for (const Prompt& prompt : golden().prompts)
    alone.merge(
        answer_on_cpu({prompt}, {.max_num_seqs = 1, .prefix_cache = false, .drafts = false}).bits);
  NativeEngine::Stats sum;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    std::vector<Prompt> prompts;
    for (int i = draw(seed, 1, 1, 10); i > 0; --i)
      prompts.push_back(
          golden().prompts[static_cast<size_t>(draw(seed, 100 + static_cast<uint64_t>(i), 0, 7))]);
    NativeSettings native{.max_num_seqs = draw(seed, 2, 1, 6),
                          .block_len = draw(seed, 3, 1, 32),
                          .max_step_rows = draw(seed, 4, 1, 40)};
    native.prefix_cache = draw(seed, 5, 0, 3) > 0;
    native.drafts = draw(seed, 9, 0, 3) > 0;
    at::set_num_threads(seed % 40 == 0 ? 2 : 1);
    if (draw(seed, 6, 0, 1) > 0) {  // a state or two, and blocks for little more than a sequence
      const auto runner = make_cpu_runner(model());
      const auto num_blocks = (70 + native.block_len - 1) / native.block_len + draw(seed, 7, 0, 2);
      native.kv_cache_gib =
          static_cast<double>(runner->state_bytes() * draw(seed, 8, 1, 3) +
                              (num_blocks + 1) * runner->block_bytes(native.block_len)) /
          (1 << 30);
    }
    const Outcome outcome = answer_on_cpu(prompts, native);
    for (const auto& [sample_id, bits] : outcome.bits)
      ASSERT_TRUE(bits == alone.at(sample_id)) << "sample " << sample_id << " of " << seed;
    sum.num_found_tokens += outcome.stats.num_found_tokens;
    sum.num_drafts += outcome.stats.num_drafts;
    sum.num_right_drafts += outcome.stats.num_right_drafts;
    sum.num_preemptions += outcome.stats.num_preemptions;
  }
  at::set_num_threads(1);
  EXPECT_GT(sum.num_found_tokens, 300);
  EXPECT_GT(sum.num_right_drafts, 500);
  EXPECT_GT(sum.num_drafts, sum.num_right_drafts + 50) << "some must be wrong";
  std::cout << sum.num_preemptions << " preemptions, " << sum.num_found_tokens << " tokens found, "
            << sum.num_right_drafts << " of " << sum.num_drafts << " drafts right\n";
}

}  // namespace rematch
