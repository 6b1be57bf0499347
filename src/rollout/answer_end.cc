#include "rollout/answer_end.h"

#include "text/stop_ids.h"

namespace rematch {

std::optional<FinishReason> take_token(TokenId token_id, const GenerateOptions& options,
                                       RepeatGuard& guard, std::vector<TokenId>& response) {
  if (is_stop_id(token_id, options.stop_ids)) return FinishReason::kStop;
  response.push_back(token_id);
  if (guard.push(token_id)) return FinishReason::kRepeat;
  if (static_cast<int64_t>(response.size()) >= options.max_new_tokens) return FinishReason::kLength;
  return std::nullopt;
}

}  // namespace rematch
