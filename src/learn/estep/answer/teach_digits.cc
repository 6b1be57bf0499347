#include "learn/estep/answer/teach_digits.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace rematch {
namespace {

// Index of the first token in which the two differ.
size_t first_difference(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  REMATCH_CHECK(at_a != a.end() && at_b != b.end(), "one answer is a prefix of the other");
  return static_cast<size_t>(std::distance(a.begin(), at_a));
}

}  // namespace

TaughtAnswer teach_digits(const AnswerText& shown, const Strings& truth,
                          const Tokenizer& tokenizer) {
  REMATCH_CHECK(shown.marks.size() == truth.size());
  const EncodedAnswer answer = encode_answer(shown, tokenizer);
  TaughtAnswer taught{.text = shown.text};
  for (const TokenId id : answer.token_ids) taught.tokens.push_back({.id = id, .label = id});
  for (size_t i = 0; i < truth.size(); ++i) {
    const ByteSpan& number = shown.marks[i];
    if (shown.text.compare(number.begin, number.end - number.begin, truth[i]) == 0) continue;
    std::string right = shown.text;
    right.replace(number.begin, number.end - number.begin, truth[i]);
    const std::vector<TokenId> right_ids = tokenizer.encode(right);
    const size_t differing = first_difference(answer.token_ids, right_ids);
    const TokenSpan tokens = answer.bytes.overlapping(answer.marks[i].begin, answer.marks[i].end);
    for (size_t token = static_cast<size_t>(tokens.begin); token < static_cast<size_t>(tokens.end);
         ++token) {
      if (token > differing) taught.tokens[token].label = kIgnoreLabel;
    }
    taught.tokens[differing].label = right_ids[differing];
  }
  return taught;
}

}  // namespace rematch
