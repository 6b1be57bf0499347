#include "learn/estep/answer/teach_digits.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "learn/estep/answer/digit_trial.h"
#include "learn/estep/answer/encode_answer.h"

namespace rematch {
namespace {

// Index of the first token in which the two differ.
size_t first_difference(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  REMATCH_CHECK(at_a != a.end() && at_b != b.end(), "one answer is a prefix of the other");
  return static_cast<size_t>(std::distance(a.begin(), at_a));
}

// Every digit of a number, and what ends it, gets a target that knows the prefix before it.
void mark_digits(const EncodedAnswer& answer, const AnswerText& shown,
                 const std::vector<std::string>& truth, const Tokenizer& tokenizer,
                 TaughtAnswer& taught) {
  static const bool has_ids = [&] {
    for (int d = 0; d < 10; ++d) {
      const std::vector<TokenId> ids = tokenizer.encode(fmt::format("{}", d));
      REMATCH_CHECK(ids.size() == 1, "one token a digit");
      digit_ids()[static_cast<size_t>(d)] = ids[0];
    }
    return true;
  }();
  REMATCH_CHECK(has_ids, "");
  for (size_t i = 0; i < truth.size(); ++i) {
    const ByteSpan& number = shown.marks[i];
    const std::string text = shown.text.substr(number.begin, number.end - number.begin);
    const TokenSpan tokens = answer.bytes.overlapping(answer.marks[i].begin, answer.marks[i].end);
    REMATCH_CHECK(tokens.end - tokens.begin == static_cast<int>(text.size()), text);
    const bool is_last = i % 4 == 3;
    const auto end = static_cast<size_t>(tokens.end);
    int& end_id = digit_ids()[is_last ? 11 : 10];
    REMATCH_CHECK(end_id == 0 || end_id == taught.tokens[end].id, "one token ends a number");
    end_id = taught.tokens[end].id;
    const int t = std::stoi(truth[i]);
    if (t > 1000 || std::stoi(text) > 1000) continue;
    for (size_t k = 0; k <= text.size(); ++k) {
      const int prefix = k == 0 ? -1 : std::stoi(text.substr(0, k));
      taught.tokens[static_cast<size_t>(tokens.begin) + k].digits =
          (t * 1002 + prefix + 1) * 2 + (is_last ? 1 : 0);
    }
  }
}

}  // namespace

TaughtAnswer teach_digits(const AnswerText& shown, const std::vector<std::string>& truth,
                          const Tokenizer& tokenizer) {
  REMATCH_CHECK(shown.marks.size() == truth.size(),
                fmt::format("{} numbers, {} true numbers", shown.marks.size(), truth.size()));
  const EncodedAnswer answer = encode_answer(shown, tokenizer);
  TaughtAnswer taught{.text = shown.text, .tokens = {}};
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
  if (digit_sigma() > 0) mark_digits(answer, shown, truth, tokenizer, taught);
  return taught;
}

}  // namespace rematch
