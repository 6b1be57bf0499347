#include "tools/import/csv_table.h"

#include <algorithm>

#include "base/text.h"
#include "tools/import/text_file.h"

namespace rematch {
namespace {

char find_separator(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  for (const char each : {';', '\t'}) {
    if (std::count(line.begin(), line.end(), each) > std::count(line.begin(), line.end(), best))
      best = each;
  }
  return best;
}

}  // namespace

std::vector<CsvRow> read_csv(const std::string& path) {
  const std::string bytes = read_utf8(path);
  const std::string_view text = bytes;
  const char separator = find_separator(text);
  std::vector<CsvRow> rows;
  CsvRow row{.line = 1, .cells = {}};
  std::string cell;
  bool in_quotes = false;
  int64_t line = 1;
  const auto end_cell = [&] {
    row.cells.push_back(python_strip(cell));
    cell.clear();
  };
  const auto end_row = [&] {
    end_cell();
    const bool is_blank = row.cells.size() == 1 && row.cells[0].empty();
    if (!is_blank) rows.push_back(std::move(row));
    row = CsvRow{.line = line + 1, .cells = {}};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_quotes) {
      const bool is_escaped = c == '"' && text.substr(i + 1).starts_with('"');
      in_quotes = c != '"' || is_escaped;
      if (in_quotes) cell += c;
      if (is_escaped) ++i;
    } else if (c == '"' && python_strip(cell).empty()) {
      in_quotes = true;
      cell.clear();
    } else if (c == separator) {
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else {
      cell += c;
    }
    line += c == '\n';
  }
  if (!cell.empty() || !row.cells.empty()) end_row();
  return rows;
}

}  // namespace rematch
