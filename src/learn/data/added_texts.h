#pragma once
#include <string>
#include <vector>

#include "learn/data/record.h"

namespace rematch {

/// Texts that no `desc` may contain: the added tokens of every supported tokenizer and of a model.
/// @param added_tokens  of the model; empty without a model
ForbiddenTexts forbidden_texts(const Strings& added_tokens);

}  // namespace rematch
