// Scenarios of the requirements that rollout generation answers for, by their names.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rollout/engine_factory.h"
#include "rollout/generate_golden.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

const std::vector<Prompt>& prompts() {
  static const std::vector<Prompt> loaded =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json")).prompts;
  return loaded;
}

std::unique_ptr<RolloutEngine> engine(int batch_size,
                                      const PixelGetter& pixels = test::synthetic_pixels) {
  const test::LoadedModel& loaded = test::rollout_model();
  return make_engine("hf", {loaded.model, loaded.tokenizer, pixels},
                     {{.max_new_tokens = 24, .batch_size = batch_size}});
}

}  // namespace

// GIVEN rollout generate batch size M > 1, WHEN rollouts are generated for M samples, THEN one
// batched generate call is made for those M samples AND per-sample response_token_ids come back.
// spec: microbatch-01 microbatch-03
TEST(RolloutSpec, MicrobatchingIncreasesDecodeParallelismWithoutChangingOutputsFormat) {
  const std::vector<Rollout> alone = engine(1)->generate(prompts(), {});
  // Every image is asked for before the first answer exists: the samples are decoded together, not
  // one by one.
  std::vector<std::string> events;
  const PixelGetter watched = [&](const ImageRef& image) {
    events.push_back("image");
    return test::synthetic_pixels(image);
  };
  const auto together =
      engine(static_cast<int>(prompts().size()), watched)->generate(prompts(), [&](int num_done) {
        events.push_back("done " + std::to_string(num_done));
      });
  ASSERT_GT(events.size(), 2u);
  EXPECT_EQ(events.back(), "done " + std::to_string(prompts().size()));
  EXPECT_EQ(events[events.size() - 2], "image") << "one call answers all";

  ASSERT_EQ(together.size(), alone.size());
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_EQ(together[i].sample_id, prompts()[i].sample_id);
    EXPECT_EQ(together[i].prompt_token_ids, prompts()[i].token_ids)
        << "the ids of the strict prompt check";
    EXPECT_EQ(together[i].response_token_ids, alone[i].response_token_ids);
    EXPECT_EQ(together[i].finish_reason, alone[i].finish_reason);
  }
}

TEST(RolloutSpec, TheNeighboursOfAPromptDoNotMatter) {
  const std::vector<Rollout> first =
      engine(3)->generate({prompts()[0], prompts()[1], prompts()[2]}, {});
  const std::vector<Rollout> second =
      engine(3)->generate({prompts()[4], prompts()[1], prompts()[7]}, {});
  EXPECT_EQ(first[1].response_token_ids, second[1].response_token_ids);
  EXPECT_EQ(first[1].prompt_token_ids, prompts()[1].token_ids)
      << "no padding and no neighbour in the prompt";
  EXPECT_EQ(second[1].prompt_token_ids, prompts()[1].token_ids);
}

// GIVEN the vLLM backend, WHEN vLLM is unavailable, THEN the trainer fails fast with an actionable
// message AND the user can switch to hf.
// spec: vllm-10
TEST(RolloutSpec, InvalidVllmConfigurationFailsFast) {
  const UserError error = test::catch_user_error([] {
    check_backend_available("vllm", {{.python = "/nowhere/python3", .tensor_parallel_size = 1}});
  });
  EXPECT_EQ(exit_code(error.kind()), 4);
  EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
  EXPECT_NO_THROW(check_backend_available("hf"));
}

}  // namespace rematch
