#pragma once
#include "data/dataset.h"
#include "text/prompt.h"
#include "vision/patches.h"

namespace rematch {

/// Refuses samples whose prompt alone fills a segment, before anything is generated for them.
/// @param cap_tokens  of a segment; 0 = none. @throws UserError (data) with up to 20 problems, each naming record, length and cap
/// Cost: a few microseconds a sample; no image is opened
void check_prompt_lengths(const Dataset& data, const PromptEncoder& prompts, const PatchOptions& patches, int cap_tokens);

}  // namespace rematch
