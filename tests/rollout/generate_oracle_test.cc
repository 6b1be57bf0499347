// Greedy ids against transformers itself, on checkpoints made for the occasion.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "rollout/generate_golden.h"
#include "support/capture.h"
#include "support/paths.h"
#include "text/tokenizer.h"

namespace rematch {

TEST(GenerateOracle, GreedyIdsEqualTransformersLive) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no " << python;
  const bool has_oracle = test::run_command(python + " -c 'import transformers, torch, safetensors'").exit_code == 0;
  if (!has_oracle) GTEST_SKIP() << "transformers is not installed";
  test::TempDir dir;
  const std::string script = test::source_path("tools/goldens/rollout_generate.py");
  const auto made = test::run_command("OMP_NUM_THREADS=1 " + python + " " + script + " live " + dir.path() + " 7");
  ASSERT_EQ(made.exit_code, 0) << made.err;

  const test::GenerateGolden golden = test::load_generate_golden(dir.file("generate.json"));
  at::set_num_threads(1);  // as rollout_model() does
  const auto model = Qwen3VL::load(dir.file("model"), {});
  const auto tokenizer = Tokenizer::load(dir.file("model"));
  for (const double penalty : {1.0, 1.3}) {
    const auto& expected = penalty == 1.0 ? golden.plain : golden.penalised;
    for (const int batch_size : {1, 8}) {
      HfEngine engine(model, tokenizer, test::synthetic_pixels,
                      {.max_new_tokens = golden.new_tokens, .repetition_penalty = penalty, .batch_size = batch_size});
      const auto got = test::responses(engine.generate(golden.prompts, {}));
      int num_different = 0;
      for (size_t i = 0; i < got.size(); ++i) num_different += got[i] == expected[i] ? 0 : 1;
      EXPECT_LE(num_different, engine.num_near_ties()) << "penalty " << penalty << " batch " << batch_size;
      std::cout << "penalty " << penalty << " batch " << batch_size << ": " << num_different << " answers differ, "
                << engine.num_near_ties() << " near ties\n";
    }
  }
}

}  // namespace rematch
