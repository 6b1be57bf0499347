#include "text/jinja/strings.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace rematch::jinja {
namespace {

char upper_char(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower_char(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_letter(char c) { return upper_char(c) != c || lower_char(c) != c; }

}  // namespace

std::string strip_text(Interpreter& interpreter, const std::string& text,
                       const std::optional<std::string>& chars, bool left, bool right) {
  interpreter.spend(text.size() / 64 + (chars.has_value() ? chars->size() : 0) + 1);
  const std::vector<std::string> removed =
      chars.has_value() ? characters(*chars) : std::vector<std::string>{};
  const auto goes = [&](std::string_view character) {
    return chars.has_value() ? std::find(removed.begin(), removed.end(), character) != removed.end()
                             : python_strip(character).empty();
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t after = begin;
    next_code_point(text, after);
    interpreter.spend(1 + removed.size() / 8);
    if (!goes(std::string_view(text).substr(begin, after - begin))) break;
    begin = after;
  }
  while (right && end > begin) {
    size_t before = end - 1;
    while (before > begin && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
    interpreter.spend(1 + removed.size() / 8);
    if (!goes(std::string_view(text).substr(before, end - before))) break;
    end = before;
  }
  return text.substr(begin, end - begin);
}

std::string replace_text(Interpreter& interpreter, const std::string& text,
                         const std::string& old_part, const std::string& new_part, int64_t count) {
  constexpr size_t kMaxBytes = 16u << 20;
  std::string out;
  size_t done = 0;
  const auto put = [&](std::string_view part) {
    out += part;
    interpreter.spend(1 + part.size() / 64);
    if (out.size() > kMaxBytes)
      throw TemplateError{"the chat template creates a string that is too long",
                          "replace gives more than 16 MiB"};
  };
  if (old_part.empty()) {
    // Python puts the new part before every character and at the end.
    for (size_t at = 0; count != 0; --count) {
      put(new_part);
      if (at >= text.size()) return out;
      next_code_point(text, at);
      put(std::string_view(text).substr(done, at - done));
      done = at;
    }
  } else {
    for (size_t at = text.find(old_part); at != std::string::npos && count != 0;
         at = text.find(old_part, done), --count) {
      put(std::string_view(text).substr(done, at - done));
      put(new_part);
      done = at + old_part.size();
    }
  }
  put(std::string_view(text).substr(done));
  return out;
}

std::string change_case(const std::string& text, const std::string& how) {
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    throw not_implemented(fmt::format("{} of text outside ASCII", how));
  }
  std::string out = text;
  bool starts_word = true;
  for (char& c : out) {
    const bool is_upper = how == "upper" || (how != "lower" && starts_word);
    // str.title: a word starts after anything but a letter; the filter: after a space, a hyphen or
    // an opening bracket; capitalize: only the first character counts.
    starts_word = how == "title"
                      ? !is_letter(c)
                      : how == "title filter" &&
                            (std::string_view("-({[<").find(c) != std::string_view::npos ||
                             python_strip(std::string(1, c)).empty());
    c = is_upper ? upper_char(c) : lower_char(c);
  }
  return out;
}

std::string escape_non_ascii(const std::string& json) {
  std::string out;
  for (size_t offset = 0; offset < json.size();) {
    const size_t begin = offset;
    const auto c = static_cast<uint32_t>(next_code_point(json, offset));
    if (c < 0x80) {
      out += json[begin];
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10),
                         0xDC00 + ((c - 0x10000) & 0x3FF));
    }
  }
  return out;
}

void throw_if_missing(const std::string& callee, const std::optional<Value>& value,
                      const std::string& name) {
  if (!value.has_value()) {
    throw TemplateError{fmt::format("{} of the chat template is missing an argument", callee),
                        fmt::format("{} is missing", name)};
  }
}

}  // namespace rematch::jinja
