#include "base/terminal_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace rematch {
namespace {

bool is_plain_in_a_shell(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') ||
         std::string_view("_-./,:=@%+").find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The words between blanks. A command in backticks is one word, so that it can be copied.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  bool is_quoted = false;
  for (const std::string& part : split(text, ' ')) {
    if (is_quoted) {
      words.back() += " " + part;
    } else {
      words.push_back(part);
    }
    if (std::count(part.begin(), part.end(), '`') % 2 != 0) is_quoted = !is_quoted;
  }
  return words;
}

std::string wrapped_line(const std::string& line, size_t indent, size_t columns) {
  if (display_width(line) <= columns) return line;
  std::string text, row = line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
  bool is_begun = false;
  for (const std::string& word : words_of(line.substr(row.size()))) {
    if (is_begun && display_width(row) + 1 + display_width(word) > columns) {
      text += row + "\n";
      row = std::string(indent, ' ') + word;
    } else {
      row += (is_begun ? " " : "") + word;
    }
    is_begun = true;
  }
  return text + row;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {  // U+0080..9F in UTF-8
      shown += fmt::format("\\x{:02x}", next);
      ++i;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

std::string shell_word(const std::string& text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain_in_a_shell)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string wrapped(const std::string& text, size_t indent, size_t columns) {
  std::string all;
  for (const std::string& line : split(text, '\n'))
    all += (all.empty() ? "" : "\n") + wrapped_line(line, indent, columns);
  return all;
}

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace rematch
