// A rollout backend of one's own: it says the same for every image.
#include <gtest/gtest.h>

#include "engine/rollout/engine_factory.h"
#include "extend/in_process.h"
#include "model/text/tokenizer.h"

namespace rematch {
namespace {

class Parrot : public RolloutEngine {
 public:
  explicit Parrot(const Tokenizer& tokenizer)
      : answer_(tokenizer.encode(
            R"({"object_1": {"desc": "parrot", "bbox_2d": ["<|coord_1|>", "<|coord_2|>", )"
            R"("<|coord_3|>", "<|coord_4|>"]}})")) {}
  void sync_weights(int64_t) override {}
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>&) override {
    std::vector<Rollout> rollouts;
    for (const Prompt& prompt : prompts) {
      rollouts.push_back({.sample_id = prompt.sample_id,
                          .prompt_token_ids = prompt.token_ids,
                          .response_token_ids = answer_});
    }
    return rollouts;
  }
  void release() override {}

 private:
  std::vector<int> answer_;
};

const bool backend_added =
    rollout_backends().add({.name = "toy_parrot",
                            .meaning = "says the same for every image",
                            .make = [](const EngineParts& parts,
                                       const GenerateOptions&) -> std::unique_ptr<RolloutEngine> {
                              return std::make_unique<Parrot>(*parts.tokenizer);
                            }});

}  // namespace

TEST(ToyBackend, IsChosenByYamlAndAnswersEveryPrompt) {
  ASSERT_TRUE(backend_added);
  const auto log = test::trained_with("rollout_backend: toy_parrot");
  ASSERT_EQ(log.size(), 2u);
  for (const auto& line : log) {
    EXPECT_EQ(line.at("rollout/valid_pred_objects"), 4) << "one in each of four samples";
    EXPECT_EQ(line.at("rollout/parse_malformed_rate"), 0);
  }
}

}  // namespace rematch
