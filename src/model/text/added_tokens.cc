#include "model/text/added_tokens.h"

#include "base/error.h"
#include "base/text.h"
#include "model/text/word_character.h"

namespace rematch {
namespace {

// The 25 code points of White_Space, which `\s` matches in the reference implementation.
bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// Position at which the trailing white space of text[least, end) begins.
size_t trailing_space_begin(std::string_view text, size_t least, size_t end) {
  while (end > least) {
    size_t begin = end - 1;
    while (begin > least && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    size_t offset = begin;
    if (!is_white_space(next_code_point(text, offset))) break;
    end = begin;
  }
  return end;
}

// Position at which the white space from `begin` on ends.
size_t leading_space_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t offset = begin;
    if (!is_white_space(next_code_point(text, offset))) break;
    begin = offset;
  }
  return begin;
}

// True if no word crosses either end of text[begin, end).
bool is_whole_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t before = begin - 1;
    while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
    if (is_word_character(next_code_point(text, before))) return false;
  }
  return end == text.size() || !is_word_character(next_code_point(text, end));
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens)
    : tokens_(tokens), nodes_(1) {
  for (size_t idx = 0; idx < tokens_.size(); ++idx) {
    const std::string& content = tokens_[idx].content;
    REMATCH_CHECK(!content.empty());
    starts_[static_cast<unsigned char>(content.front())] = true;
    size_t node = 0;
    for (const char c : content) {
      const auto [edge, is_new] = nodes_[node].next.try_emplace(static_cast<unsigned char>(c),
                                                                static_cast<int>(nodes_.size()));
      node = static_cast<size_t>(edge->second);
      if (is_new) nodes_.emplace_back();
    }
    if (nodes_[node].token_idx < 0) nodes_[node].token_idx = static_cast<int>(idx);
  }
}

int AddedTokenMatcher::find_longest(std::string_view utf8, size_t offset) const {
  int best = -1;
  size_t node = 0;
  for (size_t i = offset; i < utf8.size(); ++i) {
    const auto edge = nodes_[node].next.find(static_cast<unsigned char>(utf8[i]));
    if (edge == nodes_[node].next.end()) break;
    node = static_cast<size_t>(edge->second);
    if (nodes_[node].token_idx >= 0) best = nodes_[node].token_idx;
  }
  return best;
}

void AddedTokenMatcher::find(std::string_view utf8, std::vector<TextSpan>& spans) const {
  size_t done = 0;  // after the last span
  for (size_t offset = 0; offset < utf8.size();) {
    const int idx =
        starts_[static_cast<unsigned char>(utf8[offset])] ? find_longest(utf8, offset) : -1;
    if (idx < 0) {
      ++offset;
      continue;
    }
    const AddedToken& token = tokens_[idx];
    size_t begin = offset;
    offset += token.content.size();
    if (token.single_word && !is_whole_word(utf8, begin, offset)) continue;
    // `done` excludes white space that an earlier rstrip token has consumed.
    if (token.lstrip && begin > done) begin = trailing_space_begin(utf8, done, begin);
    const size_t end = token.rstrip ? leading_space_end(utf8, offset) : offset;
    if (begin > done) spans.push_back({utf8.substr(done, begin - done), -1});
    spans.push_back({utf8.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < utf8.size()) spans.push_back({utf8.substr(done), -1});
}

}  // namespace rematch
