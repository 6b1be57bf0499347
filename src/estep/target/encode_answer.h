#pragma once
#include <string>
#include <vector>

#include "estep/target/serialize.h"
#include "text/tokenizer.h"

namespace rematch {

/// The tokenizer and ids that answers are encoded with.
struct AnswerVocab {
  const Tokenizer* tokenizer = nullptr;
  const CoordVocab* coord_vocab = nullptr;
  TokenId im_end_id = 0;

  /// @throws UserError (data) when the tokenizer has no `<|im_end|>`. @param where  the model
  /// directory, for the error
  static AnswerVocab from(const Tokenizer& tokenizer, const CoordVocab& coord_vocab,
                          const std::string& where);
};

/// An encoded piece of answer.
struct EncodedAnswer {
  std::vector<TokenId> token_ids;
  std::vector<bool> in_desc;  ///< same length: the token overlaps a byte of a desc value
};

/// Encodes a text on its own and finds the tokens that overlap descriptions.
/// @throws UserError (data) when the tokens do not spell the text (nor its NFC form)
EncodedAnswer encode_answer(const AnswerText& answer, const Tokenizer& tokenizer);

}  // namespace rematch
