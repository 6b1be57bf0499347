#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/parsed.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// The bytes of a token sequence, with the span of each token.
struct TokenBytes {
  std::string bytes;
  std::vector<size_t> ends;  ///< offset after each token; ascending

  void append(std::string_view token) {
    bytes += token;
    ends.push_back(bytes.size());
  }

  size_t begin(size_t token) const { return token == 0 ? 0 : ends[token - 1]; }

  /// Index of the token with exactly the bytes [begin, end), begin < end; -1 when there is none.
  /// Cost: O(log tokens).
  int token_exactly(size_t begin, size_t end) const {
    const auto found = std::ranges::lower_bound(ends, end);
    if (found == ends.end() || *found != end) return -1;
    const size_t token = found - ends.begin();
    return this->begin(token) == begin ? static_cast<int>(token) : -1;
  }

  /// Half-open span of the tokens that overlap bytes [begin, end), begin < end ≤ bytes.size().
  /// Cost: O(log tokens).
  TokenSpan overlapping(size_t begin, size_t end) const {
    const auto first = std::ranges::upper_bound(ends, begin);
    const auto last = std::lower_bound(first, ends.end(), end);
    return {static_cast<int>(first - ends.begin()), static_cast<int>(last - ends.begin()) + 1};
  }

  /// The bytes of a response, up to the first id that is not in the vocabulary.
  static TokenBytes of_response(const std::vector<TokenId>& token_ids, const Tokenizer& tokenizer) {
    TokenBytes tokens;
    for (const TokenId id : token_ids) {
      if (!tokenizer.has_token(id)) break;
      tokens.append(tokenizer.token_bytes(id));
    }
    return tokens;
  }
};

}  // namespace rematch
