// The native engine computes rows of several sequences in one step, but never two prompts in one
// sequence.
#include <algorithm>
#include <map>
#include <set>

#include "native/native_engine_fixture.h"

namespace rematch {
namespace {

/// Passes steps on and notes what each sequence was given, by its first block.
class Listening : public StepRunner {
 public:
  explicit Listening(std::unique_ptr<StepRunner> runner) : runner_(std::move(runner)) {}

  int64_t block_bytes(int64_t block_len) const override { return runner_->block_bytes(block_len); }
  void reserve(const CacheShape& shape, int64_t max_rows) override {
    runner_->reserve(shape, max_rows);
  }
  void copy_block(int32_t from, int32_t to, int64_t num_tokens) override {
    runner_->copy_block(from, to, num_tokens);
  }
  void copy_state(int32_t from, int32_t to) override { runner_->copy_state(from, to); }
  void refresh() override { runner_->refresh(); }
  void release() override { runner_->release(); }

  std::span<float> forward(const Step& step) override {
    std::set<int32_t> blocks;
    int64_t next_row = 0;
    for (const StepSequence& sequence : step.sequences) {
      EXPECT_EQ(sequence.first_row, next_row) << "each row belongs to one sequence";
      next_row += sequence.num_rows;
      for (const int32_t block : sequence.block_table)
        EXPECT_TRUE(blocks.insert(block).second) << "two sequences attend to block " << block;
      std::vector<TokenId>& tokens = seen[sequence.block_table.front()];
      tokens.resize(static_cast<size_t>(sequence.num_cached));
      const auto first = step.token_ids.begin() + sequence.first_row;
      tokens.insert(tokens.end(), first, first + sequence.num_rows);
    }
    EXPECT_EQ(next_row, std::ssize(step.token_ids));
    return runner_->forward(step);
  }

  std::map<int32_t, std::vector<TokenId>> seen;

 private:
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace

// spec: pack-03 pack-14
TEST(NativeEngine, ASequenceIsOnePromptWithItsAnswer) {
  const auto model = test::rollout_model().model;
  auto listening = std::make_unique<Listening>(make_cpu_runner(model));
  const Listening& heard = *listening;
  // Room for all prompts at once, and no content shared between them.
  NativeEngine engine({.model = model,
                       .tokenizer = test::rollout_model().tokenizer,
                       .pixels = test::synthetic_pixels,
                       .runner = std::move(listening),
                       .encoder = make_cpu_encoder(model)},
                      test::greedy({.block_len = 4, .prefix_cache = false, .drafts = false}));
  const std::vector<Prompt>& prompts = test::golden().prompts;
  const std::vector<Rollout> rollouts = engine.generate(prompts, {});
  ASSERT_EQ(heard.seen.size(), prompts.size()) << "one sequence a prompt";
  std::vector<std::vector<TokenId>> found, expected;
  for (const auto& [block, tokens] : heard.seen) found.push_back(tokens);
  for (size_t i = 0; i < prompts.size(); ++i) {
    expected.push_back(prompts[i].token_ids);
    const std::vector<TokenId>& answer = rollouts[i].response_token_ids;
    expected.back().insert(expected.back().end(), answer.begin(), answer.end() - 1);
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected) << "the last token of an answer is never fed back";
}

}  // namespace rematch
