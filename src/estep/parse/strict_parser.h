#pragma once
#include <vector>

#include "flow/parsed.h"
#include "text/tokenizer.h"

namespace rematch {

/// Reads a rollout strictly, token by token, without repair (BEHAVIOUR 5): the valid objects, and
/// the prefix that is kept.
/// @param response_token_ids  as generated; any integers. Cut at the first stop id
/// @param stop_ids            see read_stop_ids()
/// @return never fails: a broken answer is a value with its status. `objects` keep the order of the
/// answer; a key may occur twice. Cost: linear (n log n in the number of coord tokens).
ParsedRollout parse_rollout(const std::vector<TokenId>& response_token_ids,
                            const Tokenizer& tokenizer, const CoordVocab& coord_vocab,
                            const std::vector<TokenId>& stop_ids);

}  // namespace rematch
