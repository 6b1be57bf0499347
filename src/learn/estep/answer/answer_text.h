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

/// Answer text, or a part of one, with the spans of its descriptions or numbers.
struct AnswerText {
  std::string text;
  std::vector<ByteSpan> marks;  ///< ascending, disjoint
};

/// Normalises a text to NFC, as some tokenizers do, and moves its marks accordingly. Marks must
/// begin and end next to ASCII punctuation.
AnswerText normalize(const AnswerText& answer);

}  // namespace rematch
