#include "base/terminal_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/json.h"
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
Strings words_of(const std::string& text) {
  Strings words;
  bool is_quoted = false;
  for (const std::string& part : split(text, ' ')) {
    if (is_quoted) {
      words.back() += " " + part;
    } else {
      words.push_back(part);
    }
    if (std::ranges::count(part, '`') % 2 != 0) is_quoted = !is_quoted;
  }
  return words;
}

std::string wrapped_line(const std::string& line, size_t indent, size_t columns) {
  if (display_width(line) <= columns) return line;
  std::string text, row = line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
  indent = std::max(indent, row.size());
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

std::string shorten(std::string_view text, size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  size_t end = 0;
  for (size_t shown = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && ++shown == columns) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string shown_label(std::string_view label) { return shown_start(label, 60); }

std::string shown_start(std::string_view text, size_t columns) {
  return printable(shorten(text, columns));
}

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
  escape_line_ends(shown);
  return shown;
}

std::string printable_lines(std::string_view text) {
  Strings lines = split(text, '\n');
  for (std::string& line : lines) line = printable(line);
  return join(lines, "\n");
}

std::string shell_word(const std::string& text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain_in_a_shell)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string with_file(std::string advice, const std::string& path) {
  constexpr std::string_view kWord = " FILE";
  const std::string name = " " + shell_word(path);
  for (size_t at = advice.find(kWord); at != std::string::npos; at = advice.find(kWord, at)) {
    const size_t end = at + kWord.size();
    const bool is_word = end == advice.size() || advice[end] == ' ' || advice[end] == '`';
    if (is_word) advice.replace(at, kWord.size(), name);
    at += is_word ? name.size() : kWord.size();
  }
  return advice;
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string wrapped(const std::string& text, size_t indent, size_t columns) {
  std::string all;
  for (const std::string& line : split(text, '\n'))
    all += (all.empty() ? "" : "\n") + wrapped_line(line, indent, columns);
  return all;
}

std::string shown_bytes(int64_t bytes) {
  constexpr int64_t kKilo = 1000, kMega = 1'000'000;
  if (bytes < kKilo) return fmt::format("{} B", bytes);
  if (bytes < kMega) return fmt::format("{} KB", bytes / kKilo);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / static_cast<double>(kMega));
}

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace rematch
