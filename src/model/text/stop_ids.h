#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "model/text/tokenizer.h"

namespace rematch {

/// Reads the ids that end an answer (BEHAVIOUR 4.1): eos_token_id of DIR/generation_config.json (an
/// id or a list; without that file, of config.json's text_config, as in transformers), `<|im_end|>`
/// and `<|endoftext|>`, if the tokenizer has them. Ascending, without duplicates.
/// @throws UserError (data) with the file, for an eos_token_id that is not the id of a token or a
/// list of them
std::vector<TokenId> read_stop_ids(const std::string& model_dir, const Tokenizer& tokenizer);

/// True if `token_id` ends an answer.
inline bool is_stop_id(TokenId token_id, std::span<const TokenId> stop_ids) {
  return contains(stop_ids, token_id);
}

/// The generated ids before the first stop id.
inline std::vector<TokenId> cut_at_stop_id(std::span<const TokenId> token_ids,
                                           std::span<const TokenId> stop_ids) {
  return {token_ids.begin(),
          std::find_first_of(token_ids.begin(), token_ids.end(), stop_ids.begin(), stop_ids.end())};
}

}  // namespace rematch
