#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace rematch {

/// Bytes [begin, end) of a text.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const ByteSpan&) const = default;
};

/// Answer text, or a part of one, with the places that its format asks about: descriptions or
/// numbers.
struct AnswerText {
  std::string text;
  std::vector<ByteSpan> marks;  ///< ascending, disjoint
};

/// The same text in canonical composition (NFC), piece by piece, with its marks. A tokenizer that
/// normalises encodes this one. Marks begin and end next to ASCII punctuation.
AnswerText normalized(const AnswerText& answer);

}  // namespace rematch
