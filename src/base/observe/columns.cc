#include "base/observe/columns.h"

#include <algorithm>
#include <cstdlib>

namespace rematch {
namespace {

bool is_number(const std::string& cell) {
  if (cell.empty()) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  if (*end == '*') ++end;  // the mark of the best
  return *end == '\0' || (*end == '%' && end[1] == '\0') ||
         (*end == ' ' && end[1] == '%' && end[2] == '\0');
}

}  // namespace

std::string clip(const std::string& text, size_t width) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (display_width({&text[i], 1}) == 1 && columns++ == width) return text.substr(0, i);
  }
  return text;
}

std::string pad(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, display_width(text)), ' ');
}

std::string table_text(const std::vector<Strings>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], display_width(row[column]));
  }
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (size_t column = 0; column < rows[i].size(); ++column) {
      const std::string& cell = rows[i][column];
      const std::string padding(widths[column] - display_width(cell), ' ');
      const bool right = column > 0 && (is_number(cell) || i == 0);
      line += (column > 0 ? "  " : "") + (right ? padding + cell : cell + padding);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (i == 0) {
      size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
      for (const size_t width : widths) total += width;
      text += std::string(total, '-') + "\n";
    }
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace rematch
