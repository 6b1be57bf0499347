#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "learn/estep/parse/token_bytes.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Bytes [begin, end) of a text.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const ByteSpan&) const = default;
};

/// Answer text, or a part of one, with the spans of its descriptions or numbers.
struct AnswerText {
  std::string text;
  std::vector<ByteSpan> marks;  ///< ascending, disjoint
};

/// Normalises a text to NFC, as some tokenizers do, and moves its marks accordingly. Marks must
/// begin and end next to ASCII punctuation.
AnswerText normalize(const AnswerText& answer);

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
