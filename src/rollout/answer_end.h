#pragma once
#include "rollout/engine.h"
#include "rollout/repeat_guard.h"
#include "rollout/sampler.h"

namespace rematch {

/// Accepts the next token of an answer, by one rule for every engine that decodes by itself: a stop
/// id ends the answer and is not kept; any other token is kept with its log-probability, and the
/// repeat guard or the length may end the answer with it. Sets `finish_reason` when it ends.
/// @return true when the answer ends
bool take_token(const ChosenToken& token, const GenerateOptions& options, RepeatGuard& guard,
                Rollout& rollout);

}  // namespace rematch
