#pragma once
#include <string>
#include <vector>

#include "data/record.h"

namespace rematch {

/// Texts that no `desc` may contain: the added tokens that every supported tokenizer has, and those
/// of a model. @param added_tokens  of the model; empty where none is given
ForbiddenTexts forbidden_texts(const std::vector<std::string>& added_tokens);

}  // namespace rematch
