#pragma once
#include <string>
#include <string_view>

#include "model/text/jinja/value.h"

namespace rematch::jinja {

/// Reads a template from the front: text between tags as Jinja2 leaves it with trim_blocks and
/// lstrip_blocks, and the words and symbols of tags. Errors are TemplateErrors with their line.
class Cursor {
 public:
  /// @param source  valid UTF-8
  explicit Cursor(std::string_view source);

  /// Reads the text up to the next tag, comments left out, and enters the tag.
  /// @return '%' or '{' for its kind, '\0' at the end of the template
  char next_tag(std::string& text);
  /// Leaves the tag.
  /// @throws when something else stands there
  void end_tag();
  /// Length of the end of the tag, if it is next, or else 0.
  size_t end_size();

  int line() const { return line_; }
  /// True when this word or symbol is next.
  bool at(std::string_view token);
  /// The same, and passes it.
  bool skip(std::string_view token);
  void expect(std::string_view token);
  /// True for a keyword argument.
  bool at_keyword();
  char peek();
  /// The next word, "" when none is next. `word` looks, `take_word` passes.
  std::string word();
  std::string take_word();
  std::string string_literal();
  [[noreturn]] void fail(const std::string& error, const std::string& what) const;
  /// "… instead of `wanted`"
  [[noreturn]] void fail_here(std::string_view wanted);
  [[noreturn]] void refuse(const std::string& construct) const;

 private:
  char character(size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }
  void advance(size_t end);
  void read_text(size_t open, char sign, char kind, std::string& text);

  std::string text_;
  size_t pos_ = 0;
  int line_ = 1;
  char kind_ = '\0';
  /// Sign of the previous tag: - or +, % for a block or comment without one.
  char close_sign_ = '\0';
};

/// Text without whitespace (or the characters `chars`, which are ASCII) at its ends.
std::string strip(const std::string& text, bool left, bool right,
                  const std::string* chars = nullptr);

}  // namespace rematch::jinja
