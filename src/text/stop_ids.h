#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace rematch {

/// Ids that end an answer (BEHAVIOUR 4.1): the eos of DIR/generation_config.json (an id or a list;
/// without that file the eos of config.json's text_config, as transformers falls back),
/// `<|im_end|>` and `<|endoftext|>` where the tokenizer has them. Ascending, each once.
/// @throws UserError (data) naming the file, for an eos that is not an id or a list of ids
std::vector<TokenId> read_stop_ids(const std::string& model_dir, const Tokenizer& tokenizer);

/// True when `token_id` ends an answer.
inline bool is_stop_id(TokenId token_id, std::span<const TokenId> stop_ids) {
  return std::find(stop_ids.begin(), stop_ids.end(), token_id) != stop_ids.end();
}

/// The answer in what a model wrote: everything before the first stop id.
inline std::vector<TokenId> cut_at_stop_id(std::span<const TokenId> token_ids,
                                           std::span<const TokenId> stop_ids) {
  return {token_ids.begin(),
          std::find_first_of(token_ids.begin(), token_ids.end(), stop_ids.begin(), stop_ids.end())};
}

}  // namespace rematch
