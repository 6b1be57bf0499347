#include "engine/rollout/answer_end.h"

#include <gtest/gtest.h>

#include "model/text/stop_ids.h"

namespace rematch {
namespace {

/// The answer that an engine makes of a model's tokens.
struct Taken {
  std::vector<TokenId> response;
  std::optional<FinishReason> reason;
};

Taken take_all(const std::vector<TokenId>& written, const GenerateOptions& options) {
  Taken taken;
  RepeatGuard guard(options.repeat_terminate, nullptr);
  Rollout rollout;
  for (size_t i = 0; i < written.size() && !taken.reason; ++i)
    if (take_token({written[i], -0.5f * static_cast<float>(i)}, options, guard, rollout))
      taken.reason = rollout.finish_reason;
  taken.response = rollout.response_token_ids;
  for (size_t i = 0; i < taken.response.size(); ++i)
    EXPECT_EQ(rollout.token_logprobs.at(i), -0.5f * static_cast<float>(i));
  EXPECT_EQ(rollout.token_logprobs.size(), taken.response.size());
  return taken;
}

}  // namespace

TEST(TakeToken, AStopIdEndsTheAnswerAndIsNotKept) {
  const Taken taken = take_all({5, 6, 9, 7}, {{}, 0, {8, 9}});
  EXPECT_EQ(taken.response, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(taken.reason, FinishReason::kStop);
  EXPECT_EQ(cut_at_stop_id(std::vector<TokenId>{5, 6, 9, 7}, std::vector<TokenId>{8, 9}),
            taken.response);
}

TEST(TakeToken, TheLastAllowedTokenIsKept) {
  const Taken taken = take_all({5, 6, 7}, {{.max_new_tokens = 2}, 0, {9}});
  EXPECT_EQ(taken.response, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(taken.reason, FinishReason::kLength);
  EXPECT_EQ(take_all({5, 9}, {{.max_new_tokens = 2}, 0, {9}}).reason, FinishReason::kStop);
}

TEST(TakeToken, AnAnswerThatRepeatsItselfSaysSoEvenAtItsLastToken) {
  const RepeatGuardSettings guard{
      .enabled = true, .min_new_tokens = 0, .max_consecutive_token_repeats = 3};
  const Taken taken = take_all({5, 5, 5, 5}, {{.max_new_tokens = 3, .repeat_terminate = guard}});
  EXPECT_EQ(taken.response, (std::vector<TokenId>{5, 5, 5}));
  EXPECT_EQ(taken.reason, FinishReason::kRepeat);
}

TEST(TakeToken, GoesOnOtherwise) { EXPECT_FALSE(take_all({5, 6}, {{}, 0, {9}}).reason); }

TEST(CutAtStopId, KeepsAnAnswerWithoutOne) {
  EXPECT_EQ(cut_at_stop_id(std::vector<TokenId>{5, 6}, {}), (std::vector<TokenId>{5, 6}));
  EXPECT_TRUE(cut_at_stop_id(std::vector<TokenId>{9, 6}, std::vector<TokenId>{9}).empty());
}

}  // namespace rematch
