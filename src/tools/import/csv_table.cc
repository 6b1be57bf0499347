#include "tools/import/csv_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "tools/import/source_files.h"

namespace rematch {

const std::string* find_cell(const CsvRow& row, const char* columns) {
  for (const std::string& name : split(columns, ' ')) {
    if (const auto found = row.find(name); found != row.end()) return &found->second;
  }
  return nullptr;
}

std::string cell_of(const CsvRow& row, const char* columns) {
  const std::string* cell = find_cell(row, columns);
  return cell == nullptr ? "" : *cell;
}

CsvTable::CsvTable(const std::string& path) : path_(path), text_(read_utf8(path)) {
  const std::string first = first_line(text_);
  for (const char each : {';', '\t'}) {
    if (std::ranges::count(first, each) > std::ranges::count(first, separator_)) separator_ = each;
  }
  next();
  header = join(cells_, ", ");
  for (const std::string& cell : cells_) {
    std::string name = lower_case(cell);
    std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
    if (!columns.try_emplace(name).second && !name.empty())
      refuse_source("from-csv", path_, fmt::format("it has the column \"{}\" twice", cell),
                    "remove one of them");
    names_.push_back(std::move(name));
  }
}

bool CsvTable::next() {
  while (at_ < text_.size()) {
    if (read_cells()) return true;
  }
  cells_.clear();
  return false;
}

bool CsvTable::read_cells() {
  cells_.assign(1, "");
  bool in_quotes = false;
  line = next_line_;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    next_line_ += c == '\n';
    if (in_quotes && c == '"' && text_.compare(at_, 1, "\"") == 0) {
      cells_.back() += text_[at_++];
    } else if (c == '"' && (in_quotes || python_strip(cells_.back()).empty())) {
      in_quotes = !in_quotes;
    } else if (in_quotes || (c != separator_ && c != '\n')) {
      cells_.back() += c;
    } else if (c == separator_) {
      cells_.emplace_back();
    } else {
      break;
    }
  }
  if (in_quotes)
    refuse_source("from-csv", fmt::format("{}:{}", path_, line), "a quote in it does not end",
                  "write a quote at the end of its cell, or remove it");
  for (std::string& cell : cells_) cell = python_strip(cell);
  return cells_.size() > 1 || !cells_[0].empty();
}

CsvRow CsvTable::row() const {
  CsvRow row = columns;
  for (size_t i = 0; i < std::min(cells_.size(), names_.size()); ++i) row[names_[i]] = cells_[i];
  return row;
}

bool CsvTable::has_more_cells() const {
  return cells_.size() > names_.size() &&
         !join({cells_.begin() + std::ssize(names_), cells_.end()}, "").empty();
}

}  // namespace rematch
