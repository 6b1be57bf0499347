#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/tokenizer.h"

namespace rematch {

/// A span of text: an added token (token_id ≥ 0) or the text between two of them (-1).
struct TextSpan {
  std::string_view text;
  TokenId token_id = -1;
};

/// Finds added tokens in text: the leftmost match first, at each position the longest. Immutable,
/// safe to share between threads.
class AddedTokenMatcher {
 public:
  /// @param tokens  contents to search for, normalised if the text is; none may be empty
  explicit AddedTokenMatcher(const std::vector<AddedToken>& tokens);

  /// Appends the spans of `utf8` in order, without empty text spans. lstrip and rstrip tokens
  /// include the adjacent white space; a single_word token inside a word is text. Cost: length of
  /// the text times length of the longest token.
  void find(std::string_view utf8, std::vector<TextSpan>& spans) const;

  bool empty() const { return tokens_.empty(); }

 private:
  // Index of the longest token that starts at `offset`; -1 = none.
  int find_longest(std::string_view utf8, size_t offset) const;

  struct Node {
    std::map<unsigned char, int> next;
    int token_idx = -1;
  };
  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  bool starts_[256] = {};
};

}  // namespace rematch
