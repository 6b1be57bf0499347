#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "flow/token.h"

namespace rematch {

/// The special tokens that a tokenizer.json's post-processor puts around a text. No prompt passes
/// through it (MODEL 8).
class PostProcessor {
 public:
  PostProcessor() = default;

  /// Reads `post_processor`: ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, a
  /// Sequence of them, or null.
  /// @param where  file and key, for errors. @throws UserError (data) when it is damaged or of
  /// another kind
  static PostProcessor read(const Json& part, const std::string& where);

  /// The ids of a single text with special tokens around them.
  std::vector<TokenId> apply(std::vector<TokenId> ids) const;

 private:
  void add(const Json& part, const std::string& where);

  std::vector<std::vector<TokenId>> steps_;  // one after the other; -1 stands for the ids so far
};

}  // namespace rematch
