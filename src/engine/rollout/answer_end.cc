#include "engine/rollout/answer_end.h"

#include "model/text/stop_ids.h"

namespace rematch {

bool take_token(const ChosenToken& token, const GenerateOptions& options, RepeatGuard& guard,
                Rollout& rollout) {
  const auto end_with = [&](FinishReason reason) {
    rollout.finish_reason = reason;
    return true;
  };
  if (is_stop_id(token.token_id, options.stop_ids)) return end_with(FinishReason::kStop);
  rollout.response_token_ids.push_back(token.token_id);
  rollout.token_logprobs.push_back(token.logprob);
  if (guard.push(token.token_id)) return end_with(FinishReason::kRepeat);
  return std::ssize(rollout.response_token_ids) >= options.max_new_tokens &&
         end_with(FinishReason::kLength);
}

}  // namespace rematch
