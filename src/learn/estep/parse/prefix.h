#pragma once
#include <cstddef>
#include <vector>

#include "learn/estep/parse/token_bytes.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Ids of the first `cut` bytes of a response. Whole tokens are kept verbatim. A token that
/// straddles the cut is replaced by the encoding of its kept bytes, or by single-byte tokens if the
/// encoding does not reproduce them (not UTF-8, not normalised).
/// @param tokens  bytes of `token_ids`, or of its first ids
/// @param cut     0..tokens.bytes.size()
std::vector<TokenId> cut_token_ids(const std::vector<TokenId>& token_ids, const TokenBytes& tokens,
                                   size_t cut, const Tokenizer& tokenizer);

}  // namespace rematch
