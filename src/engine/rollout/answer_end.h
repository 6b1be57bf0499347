#pragma once
#include "engine/rollout/engine.h"
#include "engine/rollout/repeat_guard.h"
#include "engine/rollout/sampler.h"

namespace rematch {

/// Adds the next token to an answer; the rule of every engine that decodes itself. A stop id ends
/// the answer and is not kept. Any other token is kept with its log-probability, and the repeat
/// guard or the length limit may end the answer after it. Sets `finish_reason` when the answer
/// ends.
/// @return true when the answer ends
bool take_token(const ChosenToken& token, const GenerateOptions& options, RepeatGuard& guard,
                Rollout& rollout);

}  // namespace rematch
