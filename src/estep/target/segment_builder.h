#pragma once
#include <vector>

#include "estep/answer/answer_format.h"
#include "flow/rollout.h"
#include "flow/segment.h"

namespace rematch {

/// Puts a segment together, front to back: prompt, kept prefix, taught answer, `<|im_end|>`. The
/// one place where supervision is written.
class SegmentBuilder {
 public:
  explicit SegmentBuilder(const Prompt& prompt);

  /// The part of a rollout that is kept word for word, not taught. @param token_ids  of the prefix
  void keep_prefix(const std::vector<TokenId>& token_ids);
  /// Teaches a bin at a token of the prefix. @param token  its position in the prefix
  void teach_in_prefix(int token, int bin);
  /// Appends the answer (or its last part) and `<|im_end|>`, which is taught.
  /// @return the finished segment, which has passed check_supervision()
  Segment finish(const std::vector<TaughtToken>& answer, TokenId im_end_id);

 private:
  Segment segment_;
};

}  // namespace rematch
