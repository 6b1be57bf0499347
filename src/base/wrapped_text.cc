#include "base/wrapped_text.h"

#include <algorithm>

#include "base/text.h"

namespace rematch {
namespace {

size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
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
  if (width(line) <= columns) return line;
  std::string text, row = line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
  bool is_begun = false;
  for (const std::string& word : words_of(line.substr(row.size()))) {
    if (is_begun && width(row) + 1 + width(word) > columns) {
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

std::string wrapped(const std::string& text, size_t indent, size_t columns) {
  std::string all;
  for (const std::string& line : split(text, '\n'))
    all += (all.empty() ? "" : "\n") + wrapped_line(line, indent, columns);
  return all;
}

}  // namespace rematch
