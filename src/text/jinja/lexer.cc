#include "text/jinja/lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "text/jinja/value.h"

namespace rematch::jinja {
namespace {

// The longest operators first.
constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_space_char(std::string_view character) { return python_strip(character).empty(); }

// Where the whitespace at the end of text[from, end) begins.
size_t space_begin(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    size_t begin = end - 1;
    while (begin > from && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!is_space_char(text.substr(begin, end - begin))) break;
    end = begin;
  }
  return end;
}

// \r\n and \r become \n; one newline at the very end is dropped.
std::string normalized(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where)
      : text_(normalized(source)), in_(text_), where_(where) {}

  std::vector<Token> run() {
    while (pos_ < in_.size()) outside();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& error, const std::string& what) const {
    template_error(where_, line_, error, what);
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  bool at(std::string_view text) const { return in_.substr(pos_, text.size()) == text; }

  void advance(size_t count) {
    line_ +=
        static_cast<int>(std::count(in_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                    in_.begin() + static_cast<std::ptrdiff_t>(pos_ + count), '\n'));
    pos_ += count;
  }

  void skip_space() {
    while (pos_ < in_.size()) {
      size_t end = pos_;
      next_code_point(in_, end);
      if (!is_space_char(in_.substr(pos_, end - pos_))) break;
      advance(end - pos_);
    }
  }

  // Text up to the next tag, then the tag.
  void outside() {
    size_t open = pos_;
    while (true) {
      open = in_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= in_.size()) {
        open = in_.size();
        break;
      }
      if (in_[open + 1] == '%' || in_[open + 1] == '{' || in_[open + 1] == '#') break;
      ++open;
    }
    const char kind = open < in_.size() ? in_[open + 1] : '\0';
    const char sign =
        open + 2 < in_.size() && kind != '\0' && (in_[open + 2] == '-' || in_[open + 2] == '+')
            ? in_[open + 2]
            : '\0';
    const size_t data_end = end_of_data(open, kind, sign);
    if (data_end > pos_) add(TokenKind::kData, std::string(in_.substr(pos_, data_end - pos_)));
    advance(open - pos_);
    if (kind == '\0') return;
    advance(sign == '\0' ? 2 : 3);
    line_starting_ = false;
    if (kind == '#') {
      comment();
    } else {
      inside(kind == '%');
    }
  }

  // Whitespace before a tag is removed by a minus, or (lstrip_blocks) when a block or comment is
  // the first thing on its line.
  size_t end_of_data(size_t open, char kind, char sign) const {
    if (kind == '\0') return open;
    if (sign == '-') return space_begin(in_, pos_, open);
    if (sign == '+' || kind == '{') return open;
    const std::string_view data = in_.substr(pos_, open - pos_);
    const size_t newline = data.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? pos_ : pos_ + newline + 1;
    const bool starts_line = newline != std::string_view::npos || line_starting_;
    return starts_line && space_begin(in_, line_begin, open) == line_begin ? line_begin : open;
  }

  void comment() {
    const int begin_line = line_;
    const size_t close = in_.find("#}", pos_);
    if (close == std::string_view::npos) {
      template_error(where_, begin_line, "a comment of the chat template is not closed",
                     "no #} follows");
    }
    const char sign = close > pos_ ? in_[close - 1] : '\0';
    advance(close + 2 - pos_);
    after_close(sign, true);
  }

  // What a closing tag swallows: all whitespace after a minus, else (trim_blocks) one newline.
  void after_close(char sign, bool trims_newline) {
    const size_t begin = pos_;
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims_newline && at("\n")) {
      advance(1);
    }
    line_starting_ = pos_ > begin && in_[pos_ - 1] == '\n';
  }

  bool close_tag(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    size_t length = 0;
    if (brackets_.empty() && at(close)) length = 2;
    const bool signed_close =
        brackets_.empty() && (at("-") || (is_block && at("+"))) && in_.substr(pos_ + 1, 2) == close;
    if (signed_close) length = 3;
    if (length == 0) return false;
    const char sign = length == 3 ? in_[pos_] : '\0';
    add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, "");
    advance(length);
    after_close(sign, is_block);
    return true;
  }

  void inside(bool is_block) {
    add(is_block ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, "");
    brackets_.clear();
    while (true) {
      skip_space();
      if (pos_ >= in_.size())
        fail("a tag of the chat template is not closed",
             is_block ? "no %} follows" : "no }} follows");
      if (close_tag(is_block)) return;
      const char c = in_[pos_];
      if (is_digit(c)) {
        number();
      } else if (is_name_start(c)) {
        name();
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        operation();
      }
    }
  }

  void name() {
    size_t end = pos_;
    while (end < in_.size() && (is_name_start(in_[end]) || is_digit(in_[end]))) ++end;
    add(TokenKind::kName, std::string(in_.substr(pos_, end - pos_)));
    advance(end - pos_);
  }

  size_t digits_end(size_t begin) const {
    size_t end = begin;
    while (end < in_.size() &&
           (is_digit(in_[end]) ||
            (in_[end] == '_' && end > begin && end + 1 < in_.size() && is_digit(in_[end + 1]))))
      ++end;
    return end;
  }

  void number() {
    size_t end = digits_end(pos_);
    bool is_float = false;
    // "1.x" is an attribute look-up, "1.5" a number; but a number straight after a dot has no
    // fraction.
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::kOperator &&
                           tokens_.back().text == ".";
    if (!after_dot && end + 1 < in_.size() && in_[end] == '.' && is_digit(in_[end + 1])) {
      end = digits_end(end + 1);
      is_float = true;
    }
    if (!after_dot && end < in_.size() && (in_[end] == 'e' || in_[end] == 'E')) {
      const size_t sign =
          end + 1 < in_.size() && (in_[end + 1] == '+' || in_[end + 1] == '-') ? 1 : 0;
      if (end + 1 + sign < in_.size() && is_digit(in_[end + 1 + sign])) {
        end = digits_end(end + 1 + sign);
        is_float = true;
      }
    }
    std::string digits(in_.substr(pos_, end - pos_));
    if (!is_float && digits == "0" && end < in_.size() &&
        std::string_view("xXoObB").find(in_[end]) != std::string_view::npos) {
      refuse_construct(where_, line_, fmt::format("the number 0{}…", in_[end]));
    }
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(digits));
    advance(end - pos_);
  }

  void operation() {
    for (const std::string_view op : kOperators) {
      if (!at(op)) continue;
      if (op == "(" || op == "[" || op == "{") brackets_ += op == "(" ? ')' : op == "[" ? ']' : '}';
      if (op == ")" || op == "]" || op == "}") {
        if (brackets_.empty() || brackets_.back() != op[0]) {
          fail("brackets of the chat template do not match", fmt::format("unexpected {}", op));
        }
        brackets_.pop_back();
      }
      add(TokenKind::kOperator, std::string(op));
      advance(op.size());
      return;
    }
    size_t end = pos_;
    next_code_point(in_, end);
    fail("the chat template has an unexpected character",
         fmt::format("'{}'", in_.substr(pos_, end - pos_)));
  }

  void string(char quote) {
    std::string value;
    size_t i = pos_ + 1;
    while (i < in_.size() && in_[i] != quote) {
      if (in_[i] == '\\' && i + 1 < in_.size()) {
        i = escape(i + 1, value);
      } else {
        value += in_[i++];
      }
    }
    if (i >= in_.size())
      fail("a string of the chat template is not closed",
           fmt::format("it starts with {}", in_.substr(pos_, 1)));
    add(TokenKind::kString, std::move(value));
    advance(i + 1 - pos_);
  }

  // One escape of Python's, `i` at the character after the backslash; returns the index after it.
  size_t escape(size_t i, std::string& value) {
    static constexpr std::string_view kPlain = "\\'\"abfnrtv";
    static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    const char c = in_[i];
    if (const size_t known = kPlain.find(c); known != std::string_view::npos) {
      value += kMeaning[known];
      return i + 1;
    }
    if (c == '\n') return i + 1;  // a line continued
    if (c == 'x' || c == 'u' || c == 'U')
      return hexadecimal(i + 1, c == 'x' ? 2 : c == 'u' ? 4 : 8, value);
    if (c == 'N' || is_digit(c)) refuse_construct(where_, line_, fmt::format("the escape \\{}", c));
    value += '\\';  // Python keeps the backslash of an escape it does not know
    return i;
  }

  size_t hexadecimal(size_t begin, size_t digits, std::string& value) {
    uint32_t code = 0;
    for (size_t i = begin; i < begin + digits; ++i) {
      const char c = i < in_.size() ? in_[i] : '\0';
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0)
        fail("a string of the chat template has a damaged escape",
             std::string(in_.substr(begin - 2, 4)));
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail("a string of the chat template has an escape outside Unicode",
           fmt::format("U+{:X}", code));
    }
    append_utf8(value, code);
    return begin + digits;
  }

  std::string text_;
  std::string_view in_;
  const std::string& where_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string brackets_;  // expected closing brackets
  std::vector<Token> tokens_;
};

}  // namespace

void template_error(const std::string& where, int line, const std::string& error,
                    const std::string& what) {
  throw UserError(ErrorKind::kData,
                  {.error = error,
                   .where = fmt::format("{}:{}", where, line),
                   .what = what,
                   .fix = "use the chat template that came with the model, or correct that line"});
}

void refuse_construct(const std::string& where, int line, const std::string& construct) {
  const TemplateError refusal = not_implemented(construct);
  template_error(where, line, refusal.error, refusal.what);
}

std::vector<Token> tokenize_template(std::string_view source, const std::string& where) {
  if (!is_valid_utf8(source))
    template_error(where, 1, "the chat template is not UTF-8",
                   fmt::format("{} bytes", source.size()));
  return Lexer(source, where).run();
}

}  // namespace rematch::jinja
