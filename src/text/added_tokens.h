#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace rematch {

/// A stretch of text: an added token (token_id ≥ 0) or ordinary text between them (-1).
struct TextSpan {
  std::string_view text;
  TokenId token_id = -1;
};

/// Finds added tokens in text, leftmost first, the longest at a position. Immutable, safe to share
/// between threads.
class AddedTokenMatcher {
 public:
  /// @param tokens    contents as they are searched for (already normalised where that is wanted);
  /// none may be empty
  explicit AddedTokenMatcher(const std::vector<AddedToken>& tokens);

  /// Appends the spans of `utf8` in order; empty text spans are left out. lstrip and rstrip tokens
  /// swallow the adjacent whitespace; a single_word token within a word is text. Cost: linear in
  /// the text times the longest token.
  void find(std::string_view utf8, std::vector<TextSpan>& spans) const;

  bool empty() const { return tokens_.empty(); }

 private:
  // Index of the longest token that starts at `offset`; -1 = none.
  int longest_at(std::string_view utf8, size_t offset) const;

  struct Node {
    std::map<unsigned char, int> next;
    int token_idx = -1;
  };
  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  bool starts_[256] = {};
};

}  // namespace rematch
