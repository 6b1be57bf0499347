#pragma once
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace rematch {

/// Ids that end an answer (BEHAVIOUR 4.1): the eos of DIR/generation_config.json (an id or a list; without that file the eos of
/// config.json's text_config, as transformers falls back), `<|im_end|>` and `<|endoftext|>` where the tokenizer has them.
/// Ascending, each once.
/// @throws UserError (data) naming the file, for an eos that is not an id or a list of ids
std::vector<TokenId> read_stop_ids(const std::string& model_dir, const Tokenizer& tokenizer);

}  // namespace rematch
