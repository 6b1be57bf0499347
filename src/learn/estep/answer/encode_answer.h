#pragma once
#include <vector>

#include "learn/estep/answer/answer_text.h"
#include "learn/estep/parse/token_bytes.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// An encoded piece of answer.
struct EncodedAnswer {
  std::vector<TokenId> token_ids;
  TokenBytes bytes;             ///< of token_ids
  std::vector<ByteSpan> marks;  ///< marks of the text, as spans of `bytes`
};

/// Encodes a text on its own and finds its marks in the bytes of the tokens.
/// @throws UserError (data) when the tokens do not spell the text (nor its NFC form)
EncodedAnswer encode_answer(const AnswerText& answer, const Tokenizer& tokenizer);

}  // namespace rematch
