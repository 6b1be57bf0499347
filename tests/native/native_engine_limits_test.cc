// Limits of the native engine: interrupts, inputs that do not fit, logits that are not finite.
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "base/interrupt.h"
#include "model/text/tokenizer.h"
#include "native/native_engine_fixture.h"
#include "support/capture.h"

namespace rematch {
namespace {

class NativeEngineLimitsOn : public test::NativeEngineOn {};

}  // namespace

using test::engine_on;
using test::fresh_model;
using test::gib_of;
using test::golden;
using test::greedy;
using test::responses;
using test::Runner;

INSTANTIATE_TEST_SUITE_P(Runners, NativeEngineLimitsOn,
                         testing::Values(Runner::kAten, Runner::kCpu), [](const auto& info) {
                           return info.param == Runner::kAten ? "Aten" : "Cpu";
                         });

TEST_P(NativeEngineLimitsOn, ReportsProgressAndTakesAnEmptyList) {
  EXPECT_TRUE(answer(greedy(), {}).empty());
  GenerateOptions options = greedy({.max_num_seqs = 3});
  options.max_new_tokens = 2;
  std::vector<int> seen;
  engine(options).generate(golden().prompts, [&](int num_done) { seen.push_back(num_done); });
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_GE(seen.size(), 3u);
  EXPECT_EQ(seen.back(), 8);
}

TEST_P(NativeEngineLimitsOn, LeavesNoGradientsBehind) {
  const auto& model = *test::rollout_model().model;
  const at::Tensor weight = model.parameters().front().tensor;
  weight.requires_grad_(true);
  GenerateOptions options = greedy();
  options.max_new_tokens = 3;
  answer(options, {golden().prompts[0], golden().prompts[1]});
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_TRUE(at::GradMode::is_enabled());
  weight.requires_grad_(false);
}

TEST_P(NativeEngineLimitsOn, StopsBetweenStepsWhenInterruptedAndLosesNoBlock) {
  NativeEngine native_engine = engine(greedy());
  int num_rows = 0;
  native_engine.observe_logits([&](size_t, size_t, std::span<const float>) {
    if (++num_rows == 100) set_interrupt_requested(true);
  });
  EXPECT_THROW(native_engine.generate(golden().prompts, {}), Interrupted);
  set_interrupt_requested(false);
  EXPECT_GE(num_rows, 100);
  EXPECT_LT(num_rows, 120);
  EXPECT_EQ(native_engine.blocks()->num_available(), native_engine.blocks()->num_blocks());
  EXPECT_EQ(responses(native_engine.generate(golden().prompts, {})), golden().plain)
      << "and works afterwards";
}

TEST_P(NativeEngineLimitsOn, RefusesPromptsThatDoNotFitTheirImages) {
  const auto refused = [&](const Prompt& prompt,
                           const PixelGetter& pixels = test::synthetic_pixels) {
    const UserError error = test::catch_user_error(
        [&] { engine(greedy(), pixels).generate({golden().prompts[1], prompt}, {}); });
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
  refused(prompt);
  prompt.token_ids[0] = -1;
  refused(prompt);
  prompt.token_ids.clear();
  refused(prompt);
  const auto other_size = [](const ImageRef& image) {
    return test::synthetic_pixels({.path = image.path, .grid_thw = {1, 6, 4}});
  };
  EXPECT_NE(refused(golden().prompts[0], other_size).find("6x4"), std::string::npos);
}

TEST_P(NativeEngineLimitsOn, RefusesWhatDoesNotFitTheCacheBeforeAnythingIsComputed) {
  const auto refused = [&](const GenerateOptions& options) {
    NativeEngine native_engine = engine(options);
    int num_rows = 0;
    native_engine.observe_logits([&](size_t, size_t, std::span<const float>) { ++num_rows; });
    const UserError error =
        test::catch_user_error([&] { native_engine.generate(golden().prompts, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_EQ(num_rows, 0);
    EXPECT_NE(error.problems().front().fix.find("kv_cache_gib"), std::string::npos);
    return error.problems().front();
  };
  EXPECT_NE(refused(greedy({.kv_cache_gib = 1e-9})).what.find("the cache has 0"),
            std::string::npos);
  EXPECT_EQ(refused(greedy({.kv_cache_gib = gib_of(10, 16)})).where, "sample 4 (golden)")
      << "34 + 127 tokens";
  GenerateOptions endless = greedy({.kv_cache_gib = gib_of(100, 16)});
  endless.max_new_tokens = std::numeric_limits<int>::max();
  EXPECT_NE(refused(endless).what.find("2147483647"), std::string::npos);
  // The engine is none the worse for it.
  NativeEngine native_engine = engine(greedy({.kv_cache_gib = gib_of(10, 16)}));
  test::catch_user_error([&] { native_engine.generate(golden().prompts, {}); });
  EXPECT_EQ(responses(native_engine.generate({golden().prompts[1]}, {}))[0], golden().plain[1]);
  test::catch_user_error([&] { native_engine.generate(golden().prompts, {}); });
  EXPECT_EQ(responses(native_engine.generate({golden().prompts[1]}, {}))[0], golden().plain[1]);
}

TEST_P(NativeEngineLimitsOn, NamesTheSampleWhoseLogitsAreNotFinite) {
  const auto broken = fresh_model();
  broken->parameter("lm_head.weight").fill_(std::numeric_limits<float>::quiet_NaN());
  NativeEngine native_engine = engine_on(GetParam(), broken, greedy());
  const UserError error = test::catch_user_error(
      [&] { native_engine.generate({golden().prompts[1], golden().prompts[2]}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems().front().where, "sample 1 (golden)");
  EXPECT_EQ(native_engine.blocks()->num_available(), native_engine.blocks()->num_blocks());
}

TEST_P(NativeEngineLimitsOn, DecodesInBfloat16) {
  ModelOptions half;
  half.dtype = at::kBFloat16;
  const auto model = Model::load(test::source_path("tests/golden/rollout_model"), half);
  NativeEngine native_engine = engine_on(GetParam(), model, greedy());
  const std::vector<Rollout> rollouts = native_engine.generate(golden().prompts, {});
  int num_first_equal = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    ASSERT_EQ(rollouts[i].response_token_ids.size(), static_cast<size_t>(golden().new_tokens));
    num_first_equal += rollouts[i].response_token_ids[0] == golden().plain[i][0] ? 1 : 0;
  }
  EXPECT_GE(num_first_equal, 6) << "rounding may turn a few first tokens, not most";
}

TEST(NativeEngine, ChecksItsOptions) {
  const auto refused = [](const NativeSettings& native) {
    const UserError error = test::catch_user_error(
        [&] { engine_on(Runner::kAten, test::rollout_model().model, {{.native = native}}); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.problems().front().where;
  };
  EXPECT_EQ(refused({.max_num_seqs = 0}), "native.max_num_seqs");
  EXPECT_EQ(refused({.kv_cache_gib = -1}), "native.kv_cache_gib");
  EXPECT_EQ(refused({.kv_cache_gib = std::numeric_limits<double>::quiet_NaN()}),
            "native.kv_cache_gib");
}

}  // namespace rematch
