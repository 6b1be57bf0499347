#pragma once
#include <vector>

#include "base/flow/rollout.h"
#include "base/flow/segment.h"
#include "learn/estep/answer/answer_format.h"

namespace rematch {

/// Builds a segment front to back: prompt, kept prefix, supervised answer, `<|im_end|>`. No other
/// code writes supervision.
class SegmentBuilder {
 public:
  explicit SegmentBuilder(const Prompt& prompt);

  /// Adds the kept prefix of a rollout, without supervision.
  void keep_prefix(const std::vector<TokenId>& token_ids);
  /// Adds a coord slot at a token of the prefix.
  /// @param token  position in the prefix
  void teach_in_prefix(int token, int bin);
  /// Appends the answer (or its last part) and `<|im_end|>`, with supervision.
  /// @return the finished segment, checked by check_supervision()
  Segment finish(const std::vector<TaughtToken>& answer, TokenId im_end_id);

 private:
  Segment segment_;
};

}  // namespace rematch
