#include "model/text/split_pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "model/text/unicode_additions.h"

namespace rematch {
namespace {

constexpr size_t kMaxPatternBytes = 4096;

// Categories that lost no code points between the two Unicode versions: adding some is enough.
constexpr std::array<std::string_view, 25> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Me", "N",  "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So"};

bool is_ascii_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The inside of a character class for one general category.
std::string category_class(std::string_view category) {
  std::string text = fmt::format("\\p{{{}}}", category);
  for (const CategoryRun& run : kUnicodeAdditions) {
    if (std::string_view(run.category).starts_with(category))
      text += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", run.first, run.last);
  }
  return text;
}

class Rewriter {
 public:
  Rewriter(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string rewrite() {
    while (pos_ < in_.size()) rewrite_next();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& construct) const {
    throw data_error(
        {.error = fmt::format("the pre-tokenizer's pattern uses {}, which is not implemented",
                              construct),
         .where = where_,
         .what = fmt::format("byte {} of {}", pos_, in_.substr(0, 200)),
         .fix = "use a tokenizer with the split pattern of a supported model family"});
  }
  char peek(size_t ahead = 0) const { return pos_ + ahead < in_.size() ? in_[pos_ + ahead] : '\0'; }
  void copy(size_t count = 1) {
    out_ += in_.substr(pos_, count);
    pos_ += count;
  }

  void rewrite_next() {
    switch (peek()) {
      case '\\': rewrite_escape(false); break;
      case '[': rewrite_class(); break;
      case '(': rewrite_group(); break;
      case '{': rewrite_repeat(); break;
      case '.':
        out_ += "[^\\n]";
        ++pos_;
        break;
      case '^':
      case '$': refuse(fmt::format("the anchor {}", peek()));
      case '\0': refuse("a NUL character");
      default: copy();
    }
  }

  void rewrite_group() {
    if (peek(1) == '*') refuse("(*");
    if (peek(1) != '?') return copy();
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"}) {
      if (in_.substr(pos_, opening.size()) == opening) return copy(opening.size());
    }
    refuse(fmt::format("the group {}…", in_.substr(pos_, 3)));
  }

  void rewrite_repeat() {
    // Both engines read a brace without a count as a literal.
    if (const char next = peek(1); (next < '0' || next > '9') && next != ',') {
      out_ += "\\{";
      ++pos_;
      return;
    }
    const size_t close = in_.find('}', pos_);
    const std::string_view body =
        close == std::string_view::npos ? "" : in_.substr(pos_ + 1, close - pos_ - 1);
    const bool digits =
        !body.empty() && body.front() != ',' && body.size() <= 9 &&
        std::ranges::all_of(body, [](char c) { return (c >= '0' && c <= '9') || c == ','; }) &&
        std::ranges::count(body, ',') <= 1;
    if (!digits) refuse("a brace that is not {n}, {n,} or {n,m}");
    copy(body.size() + 2);
    if (peek() == '+') refuse("}+ (possessive in one engine only)");
  }

  void rewrite_class() {
    copy();
    if (peek() == '^') copy();
    if (peek() == ']') refuse("] at the start of a class");
    while (peek() != ']') {
      if (pos_ >= in_.size()) refuse("a class that is not closed");
      if (peek() == '[') refuse("a class inside a class");
      if (peek() == '\0') refuse("a NUL character");
      if (peek() == '&' && peek(1) == '&') refuse("&& (class intersection)");
      if (peek() == '\\') {
        rewrite_escape(true);
      } else {
        copy();
      }
    }
    copy();
  }

  void rewrite_escape(bool in_class) {
    const char kind = peek(1);
    const auto put = [&](std::string_view text) {
      out_ += text;
      pos_ += 2;
    };
    switch (kind) {
      case 's': return put("\\p{White_Space}");
      case 'S': return put("\\P{White_Space}");
      case 'v': return put("\\x{B}");
      case 'r':
      case 'n':
      case 't':
      case 'f': return copy(2);
      case 'd':
        out_ += in_class ? category_class("Nd") : "[" + category_class("Nd") + "]";
        pos_ += 2;
        return;
      case 'p':
      case 'P': return rewrite_property(in_class);
      case 'x':
      case 'u': return rewrite_hexadecimal();
      default: break;
    }
    const auto byte = static_cast<unsigned char>(kind);
    if (kind == '\0' || byte >= 0x80 || is_ascii_alnum(kind)) {
      refuse(fmt::format("\\{}", byte >= 0x20 && byte < 0x7F ? std::string(1, kind) : "?"));
    }
    copy(2);
  }

  void rewrite_property(bool in_class) {
    const bool negated = peek(1) == 'P';
    const size_t close = in_.find('}', pos_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("\\p without {…}");
    const std::string_view name = in_.substr(pos_ + 3, close - pos_ - 3);
    const bool known = contains(kCategories, name);
    if (!known) refuse(fmt::format("\\{}{{{}}}", peek(1), name.substr(0, 40)));
    if (negated && in_class) refuse("\\P{…} inside a class");
    out_ += in_class ? category_class(name)
                     : fmt::format("[{}{}]", negated ? "^" : "", category_class(name));
    pos_ = close + 1;
  }

  void rewrite_hexadecimal() {
    const bool braced = peek(1) == 'x' && peek(2) == '{';
    size_t end = pos_ + 2 + (braced ? 1 : 0);
    const size_t begin = end;
    const size_t most = braced ? 6 : peek(1) == 'u' ? 4 : 2;
    while (end < in_.size() && end - begin < most && is_hex(in_[end])) ++end;
    const bool complete =
        end > begin && (braced ? end < in_.size() && in_[end] == '}' : end - begin == most);
    if (!complete) refuse("a damaged \\x or \\u");
    out_ += fmt::format("\\x{{{}}}", in_.substr(begin, end - begin));
    pos_ = end + (braced ? 1 : 0);
  }

  std::string_view in_;
  const std::string& where_;
  size_t pos_ = 0;
  std::string out_;
};

}  // namespace

std::string to_pcre_pattern(std::string_view pattern, const std::string& where) {
  if (pattern.empty() || pattern.size() > kMaxPatternBytes) {
    throw data_error(
        {.error = "the pre-tokenizer's pattern is empty or too long",
         .where = where,
         .what = fmt::format("{} bytes; the limit is {}", pattern.size(), kMaxPatternBytes),
         .fix = "use a model of a supported family: this pattern is not one of theirs"});
  }
  return Rewriter(pattern, where).rewrite();
}

std::string literal_to_pcre_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !is_ascii_alnum(c)) {
      out += fmt::format("\\x{{{:X}}}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace rematch
