#pragma once
#include <string>
#include <vector>

#include "flow/segment.h"

namespace rematch {

/// The specification's sanity check: the prompt that a backend used equals the encoded one, id by id.
/// @param ours     expanded ids of the encoded prompt
/// @param theirs   ids the backend reports
/// @param backend  its name in the error, e.g. "vllm"
/// @param where    "path:line" of the sample
/// @throws UserError (data) naming the first differing position
void check_prompt_ids(const std::vector<TokenId>& ours, const std::vector<TokenId>& theirs, const std::string& backend,
                      const std::string& where);

/// Every supervised position is in the assistant span [prompt_len, encoded_len), is supervised once, and its label is its token.
/// @throws UserError (data) naming sample and position
void check_supervision(const Segment& segment);

/// @param cap_tokens  `global_max_length`; 0 = no cap
/// @throws UserError (data) with length, cap, sample and mitigations when the segment is longer
void check_encoded_len(const Segment& segment, int cap_tokens);

}  // namespace rematch
