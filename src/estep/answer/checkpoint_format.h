#pragma once
#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace rematch {

/// Name of the answer format in which a checkpoint is asked and read (BEHAVIOUR 19.9): the one
/// given; else the one of its rematch_prompt.json; else `coord_tokens` when its tokenizer has them;
/// else its family's stock format.
/// @throws UserError (data) for a damaged rematch_prompt.json or config.json
std::string checkpoint_format(const std::optional<std::string>& given, const std::string& model_dir,
                              const Tokenizer& tokenizer);

}  // namespace rematch
