#pragma once
#include <optional>
#include <string>

#include "model/text/stored_prompt.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// @throws UserError (data) when the answer format of a rematch_prompt.json is not known
void check_stored_format(const StoredPrompt& stored, const std::string& model_dir);

/// Name of the answer format of a checkpoint (BEHAVIOUR 19.9): the given one; else the one of its
/// rematch_prompt.json; else `coord_tokens` when its tokenizer has them;
/// else its family's stock format.
/// @throws UserError (data) for a damaged rematch_prompt.json or config.json
std::string checkpoint_format(const std::optional<std::string>& given, const std::string& model_dir,
                              const Tokenizer& tokenizer);

}  // namespace rematch
