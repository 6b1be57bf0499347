#include "model/text/jinja/cursor.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace rematch::jinja {
namespace {

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

// \r\n and \r become \n; one newline at the very end is dropped.
Cursor::Cursor(std::string_view source) {
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\n' || i == 0 || source[i - 1] != '\r')
      text_ += source[i] == '\r' ? '\n' : source[i];
  }
  if (text_.ends_with('\n')) text_.pop_back();
}

void Cursor::fail(const std::string& error, const std::string& what) const {
  throw TemplateError{error, what, line_};
}

void Cursor::fail_here(std::string_view wanted) {
  std::string next = word().substr(0, 60);
  if (next.empty() && peek() > ' ' && peek() <= '~') next = peek();
  fail("the chat template has wrong syntax", fmt::format("'{}' instead of {}", next, wanted));
}

void Cursor::refuse(const std::string& construct) const { throw unsupported(construct, line_); }

void Cursor::advance(size_t end) {
  line_ += static_cast<int>(std::count(text_.begin() + pos_, text_.begin() + end, '\n'));
  pos_ = end;
}

char Cursor::next_tag(std::string& text) {
  while (pos_ < text_.size()) {
    size_t open = text_.find('{', pos_);
    while (open < text_.size() &&
           std::string_view("%{#").find(character(open + 1)) == std::string_view::npos)
      open = text_.find('{', open + 1);
    open = std::min(open, text_.size());
    kind_ = character(open + 1);
    const char sign = character(open + 2);
    const bool is_signed = sign == '-' || sign == '+';
    read_text(open, sign, kind_, text);
    if (open == text_.size()) break;
    advance(open + (is_signed ? 3 : 2));
    if (kind_ != '#') return kind_;
    const size_t close = text_.find("#}", pos_);
    if (close == std::string::npos) fail("a comment of the chat template has no end", "no #}");
    const char last = close > pos_ ? text_[close - 1] : '%';
    close_sign_ = last == '-' || last == '+' ? last : '%';
    advance(close + 2);
  }
  return '\0';
}

// The text before a tag. The tag before it swallows all whitespace after a minus, a block without a
// sign one newline; a minus of the next tag swallows whitespace, and so does a block or comment
// that is the first thing on its line.
void Cursor::read_text(size_t open, char sign, char kind, std::string& out) {
  std::string text = text_.substr(pos_, open - pos_);
  if (close_sign_ == '-') {
    text = strip(text, true, false);
  } else if (close_sign_ == '%' && text.starts_with('\n')) {
    text.erase(0, 1);
  }
  const size_t begin = open - text.size(), last_line = text.rfind('\n') + 1;
  const bool starts_line = begin == 0 || last_line > 0 || text_[begin - 1] == '\n';
  if (open < text_.size() && sign == '-') {
    text = strip(text, false, true);
  } else if (open < text_.size() && kind != '{' && sign != '+' && starts_line &&
             python_strip(text.substr(last_line)).empty()) {
    text.resize(last_line);
  }
  out += text;
  advance(open);
}

size_t Cursor::end_size() {
  const bool is_signed = peek() == '-' || (peek() == '+' && kind_ == '%');
  const bool is_end = text_.compare(pos_ + (is_signed ? 1 : 0), 2, kind_ == '%' ? "%}" : "}}") == 0;
  return !is_end ? 0 : is_signed ? 3 : 2;
}

void Cursor::end_tag() {
  const size_t size = end_size();
  if (size == 0) fail_here(kind_ == '%' ? "%}" : "}}");
  close_sign_ = character(pos_);
  advance(pos_ + size);
}

char Cursor::peek() {
  advance(std::min(text_.find_first_not_of(" \t\n\v\f", pos_), text_.size()));
  return character(pos_);
}

std::string Cursor::word() {
  peek();
  size_t end = pos_;
  while (is_word(character(end))) ++end;
  return text_.substr(pos_, end - pos_);
}

std::string Cursor::take_word() {
  std::string taken = word();
  advance(pos_ + taken.size());
  return taken;
}

bool Cursor::at(std::string_view token) {
  if (is_word(token[0])) return word() == token;
  peek();
  return text_.compare(pos_, token.size(), token) == 0 &&
         (token != "=" || character(pos_ + 1) != '=');
}

bool Cursor::skip(std::string_view token) {
  if (!at(token)) return false;
  advance(pos_ + token.size());
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!skip(token)) fail_here(token);
}

bool Cursor::at_keyword() {
  const size_t size = word().size(), end = text_.find_first_not_of(" \n", pos_ + size);
  return size > 0 && character(end) == '=' && character(end + 1) != '=';
}

std::string Cursor::string_literal() {
  const char quote = peek();
  std::string value;
  size_t i = pos_ + 1;
  for (; i < text_.size() && text_[i] != quote; ++i) {
    const char c = text_[i];
    const char escaped = c == '\\' ? character(++i) : '\0';
    if (c != '\\') {
      value += c;
    } else if (const size_t known = std::string_view("\\'\"nrt").find(escaped);
               known != std::string_view::npos) {
      value += "\\'\"\n\r\t"[known];
    } else if (is_word(escaped) || escaped <= ' ' || (escaped & 0x80) != 0) {
      refuse(fmt::format("the escape \\{}", is_word(escaped) ? escaped : ' '));
    } else {
      (value += c) += escaped;
    }
  }
  if (i >= text_.size())
    fail("a string of the chat template has no end", fmt::format("it starts with {}", quote));
  advance(i + 1);
  return value;
}

std::string strip(const std::string& text, bool left, bool right, const std::string* chars) {
  if (chars == nullptr) {
    // A letter keeps the whitespace behind it.
    const std::string kept = python_strip((left ? "" : "x") + text + (right ? "" : "x"));
    return kept.substr(left ? 0 : 1, kept.size() - (left ? 0 : 1) - (right ? 0 : 1));
  }
  if (std::ranges::any_of(*chars, [](char c) { return (c & 0x80) != 0; }))
    throw unsupported("strip of characters outside ASCII");
  const size_t begin = left ? text.find_first_not_of(*chars) : 0;
  const size_t end = right ? text.find_last_not_of(*chars) + 1 : text.size();
  return begin < end ? text.substr(begin, end - begin) : "";
}

}  // namespace rematch::jinja
