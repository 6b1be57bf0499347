#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/flow/segment.h"
#include "base/keeps_state.h"

namespace rematch {

/// A rollout made its segment longer than `global_max_length`. The window is still unused, so the
/// run stops with its state saved.
struct SegmentTooLong : KeepingError {
  using KeepingError::KeepingError;
};

/// The specification's sanity check: the backend used exactly the encoded prompt.
/// @param ours     expanded ids of the encoded prompt
/// @param theirs   ids reported by the backend
/// @param backend  name for the error, e.g. "vllm"
/// @param where    "path:line" of the sample
/// @throws UserError (data) naming the first differing position
void check_prompt_ids(const std::vector<TokenId>& ours, const std::vector<TokenId>& theirs,
                      const std::string& backend, const std::string& where);

/// Checks that every supervised position is in the assistant span [prompt_len, encoded_len), is
/// supervised once, and has its token as label.
/// @throws UserError (data) naming sample and position
void check_supervision(const Segment& segment);

/// Checks the length of a segment.
/// @param cap_tokens  `global_max_length`; 0 = no cap
/// @throws SegmentTooLong (data) with length, cap, sample and mitigations
void check_encoded_len(const Segment& segment, int cap_tokens);

}  // namespace rematch
