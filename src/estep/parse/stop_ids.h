#pragma once
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace rematch {

/// Ids that end an answer: `<|im_end|>`, `<|endoftext|>` (where the tokenizer has them), and `eos_token_id` of the directory's
/// generation_config.json, when that file exists. Ascending, distinct.
/// @throws UserError (data) when generation_config.json is damaged or its eos_token_id is neither an integer, a list of them nor null
std::vector<int> stop_token_ids(const Tokenizer& tokenizer, const std::string& model_dir);

}  // namespace rematch
