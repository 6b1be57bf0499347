#pragma once
#include <string>
#include <vector>

#include "base/flow/token.h"
#include "base/json.h"

namespace rematch {

/// The special tokens that a tokenizer.json's post-processor adds around a text. Prompts do not use
/// it (MODEL 8).
class PostProcessor {
 public:
  PostProcessor() = default;

  /// Reads `post_processor`: ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, a
  /// Sequence of them, or null.
  /// @param where  file and key, for errors
  /// @throws UserError (data) if it is damaged or of another kind
  static PostProcessor read(const Json& part, const std::string& where);

  /// Adds the special tokens around the ids of a single text.
  std::vector<TokenId> apply(std::vector<TokenId> ids) const;

 private:
  void add(const Json& part, const std::string& where);

  std::vector<std::vector<TokenId>> steps_;  // applied in order; -1 = the ids so far
};

}  // namespace rematch
