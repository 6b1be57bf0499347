#pragma once
#include <optional>
#include <vector>

#include "rollout/engine.h"
#include "rollout/repeat_guard.h"

namespace rematch {

/// Accepts the next token of an answer, by one rule for every engine that decodes by itself: a stop
/// id ends the answer and is not kept; any other token is kept, and the repeat guard or the length
/// may end the answer with it.
/// @return why the answer ends; nothing while it continues
std::optional<FinishReason> take_token(TokenId token_id, const GenerateOptions& options,
                                       RepeatGuard& guard, std::vector<TokenId>& response);

}  // namespace rematch
