// Greedy ids and their log-probabilities against transformers itself, on checkpoints made for the
// occasion.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/cpu/runner.h"
#include "engine/rollout/native/native_engine.h"
#include "model/text/tokenizer.h"
#include "rollout/generate_golden.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

namespace {

// @param script_name  of dev/goldens; `live DIR SEED` writes DIR/model and DIR/generate.json
void expect_transformers_ids(const std::string& script_name) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no " << python;
  const bool has_oracle =
      test::run_command(python + " -c 'import transformers, torch, safetensors'").exit_code == 0;
  if (!has_oracle) GTEST_SKIP() << "transformers is not installed";
  test::TempDir dir;
  const std::string script = test::source_path("dev/goldens/" + script_name);
  const auto made = test::run_command("OMP_NUM_THREADS=1 " + python + " " + script + " live " +
                                      dir.path() + " 7");
  ASSERT_EQ(made.exit_code, 0) << made.err;

  const test::GenerateGolden golden = test::load_generate_golden(dir.file("generate.json"));
  at::set_num_threads(1);  // as rollout_model() does
  const auto model = Model::load(dir.file("model"), {});
  const auto tokenizer = Tokenizer::load(dir.file("model"));
  for (const double penalty : {1.0, 1.3}) {
    const auto& expected = penalty == 1.0 ? golden.plain : golden.penalised;
    const auto compare = [&](auto& engine, const std::string& name) {
      const std::vector<Rollout> rollouts = engine.generate(golden.prompts, {});
      test::expect_logprobs(rollouts, expected,
                            penalty == 1.0 ? golden.plain_logprobs : golden.penalised_logprobs);
      const auto got = test::responses(rollouts);
      int num_different = 0;
      for (size_t i = 0; i < got.size(); ++i) num_different += got[i] == expected[i] ? 0 : 1;
      EXPECT_LE(num_different, engine.num_near_ties()) << name << ", penalty " << penalty;
      std::cout << name << ", penalty " << penalty << ": " << num_different << " answers differ, "
                << engine.num_near_ties() << " near ties\n";
    };
    GenerateOptions options{{.max_new_tokens = golden.new_tokens, .repetition_penalty = penalty}};
    for (const int batch_size : {1, 8}) {
      options.batch_size = batch_size;
      HfEngine engine(model, tokenizer, test::synthetic_pixels, options);
      compare(engine, "hf, batch " + std::to_string(batch_size));
    }
    NativeEngine native({.model = model,
                         .tokenizer = tokenizer,
                         .pixels = test::synthetic_pixels,
                         .runner = make_cpu_runner(model),
                         .encoder = make_cpu_encoder(model)},
                        options);
    compare(native, "native");
    NativeEngine aten({.model = model,
                       .tokenizer = tokenizer,
                       .pixels = test::synthetic_pixels,
                       .runner = make_aten_runner(model),
                       .encoder = make_aten_encoder(model)},
                      options);
    compare(aten, "native on ATen");
  }
}

}  // namespace

TEST(GenerateOracle, GreedyIdsEqualTransformersLive) {
  expect_transformers_ids("rollout_generate.py");
}

TEST(GenerateOracle, GreedyIdsOfATowerWithWindowsEqualTransformersLive) {
  expect_transformers_ids("model_qwen2_5vl.py");
}

// Acceptance (d) of Qwen3.5.
TEST(GenerateOracle, GreedyIdsOfTheDeltaRuleEqualTransformersLive) {
  expect_transformers_ids("model_qwen3_5.py");
}

}  // namespace rematch
