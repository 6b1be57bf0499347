#include "engine/rollout/engine_factory.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "rollout/generate_golden.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// Whatever this machine has, vLLM is not there.
EngineParts parts() {
  return {test::rollout_model().model,
          test::rollout_model().tokenizer,
          test::synthetic_pixels,
          {{.python = "/nowhere/python3", .tensor_parallel_size = 1}}};
}

}  // namespace

TEST(EngineFactory, MakesTheEnginesThatNeedNothingElse) {
  for (const char* const backend : {"hf", "native"}) {
    check_backend_available(backend);
    EXPECT_FALSE(rollout_backends().find(backend).holds_own_weights);
    EXPECT_NE(make_engine(backend, parts(), {}), nullptr);
  }
}

// spec: vllm-10
TEST(EngineFactory, RefusesTheOthersWithTheWayOut) {
  const auto refusal = [](const std::string& backend, ErrorKind kind) {
    const UserError early =
        test::catch_user_error([&] { check_backend_available(backend, parts().vllm); });
    const UserError late = test::catch_user_error([&] { make_engine(backend, parts(), {}); });
    EXPECT_EQ(early.kind(), kind) << backend;
    EXPECT_EQ(early.problems().front().error, late.problems().front().error);
    return early.problems().front().fix;
  };
  EXPECT_NE(refusal("vllm", ErrorKind::kEnvironment).find("rollout_backend: hf"),
            std::string::npos);
  EXPECT_NE(refusal("nativ", ErrorKind::kConfig).find("\"native\""), std::string::npos);
  EXPECT_NE(refusal("hg", ErrorKind::kConfig).find("\"hf\""), std::string::npos);
  EXPECT_NE(refusal("", ErrorKind::kConfig).find("hf"), std::string::npos);
}

TEST(EngineFactory, TheDeltaRuleNeedsABackendThatHasIt) {
  TextDescription text;
  check_backend_decodes("vllm", text, false);
  DeltaDescription delta;
  delta.conv_kernel = 4;
  text.layers.push_back({.mixer = delta});
  check_backend_decodes("native", text, false);
  check_backend_decodes("hf", text, false);
  const UserError error =
      test::catch_user_error([&] { check_backend_decodes("vllm", text, false); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems().front().fix.find("`hf` or `native`"), std::string::npos)
      << error.problems().front().fix;
}

TEST(EngineFactory, NativeDecodesOneWidthOfTheDeltaRulesConvolution) {
  for (const int width : {2, 3, 7}) {
    TextDescription text;
    DeltaDescription delta;
    delta.conv_kernel = width;
    text.layers.push_back({.mixer = delta});
    check_backend_decodes("hf", text, false);
    const UserError error =
        test::catch_user_error([&] { check_backend_decodes("native", text, false); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.problems().front().what.find("linear_conv_kernel_dim"), std::string::npos);
    EXPECT_NE(error.problems().front().fix.find("`hf`"), std::string::npos)
        << error.problems().front().fix;
  }
}

TEST(EngineFactory, AModelInFourBitsAnswersAsItsDequantisedWeights) {
  const std::string directory = test::source_path("tests/golden/rollout_model");
  at::set_num_threads(1);
  const auto packed = Model::load(directory, {.four_bit = FourBitSettings{}}),
             plain = Model::load(directory, {});
  ASSERT_GT(packed->num_packed(), 0);
  for (const NamedParameter& parameter : packed->parameters())
    plain->parameter(parameter.name).copy_(parameter.values());
  const test::GenerateGolden golden =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json"));
  const auto answers = [&](const std::string& backend, const std::shared_ptr<Model>& model) {
    EngineParts with = parts();
    with.model = model;
    const GenerateOptions options{{.max_new_tokens = golden.new_tokens, .batch_size = 4}};
    return test::responses(make_engine(backend, with, options)->generate(golden.prompts, {}));
  };
  const auto expected = answers("hf", plain);
  EXPECT_NE(expected, golden.plain);  // quantising changes answers
  EXPECT_EQ(answers("hf", packed), expected);
  EXPECT_EQ(answers("native", packed), expected);
  const TextDescription& text = packed->description().text;
  EXPECT_EQ(test::catch_user_error([&] { check_backend_decodes("vllm", text, true); }).kind(),
            ErrorKind::kConfig);
  check_backend_decodes("vllm", text, false);
}

TEST(EngineFactory, ChecksTheOptions) {
  GenerateOptions options;
  options.repeat_terminate.enabled = true;
  options.repeat_terminate.ngram_size = 0;
  EXPECT_EQ(test::catch_user_error([&] { make_engine("hf", parts(), options); }).kind(),
            ErrorKind::kConfig);
  options = {};
  options.top_p = 2;
  EXPECT_EQ(test::catch_user_error([&] { make_engine("hf", parts(), options); }).kind(),
            ErrorKind::kConfig);
  EXPECT_EQ(test::catch_user_error([&] { make_engine("native", parts(), options); }).kind(),
            ErrorKind::kConfig);
  options = {};
  options.native.max_num_seqs = 0;
  EXPECT_EQ(test::catch_user_error([&] { make_engine("native", parts(), options); })
                .problems()
                .front()
                .where,
            "native.max_num_seqs");
}

}  // namespace rematch
