#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

/// A row of a CSV with its line.
struct CsvRow {
  int64_t line = 0;
  std::vector<std::string> cells;  ///< trimmed
};

/// Reads a CSV (RFC 4180): cells may stand between quotes, also over several lines. The separator
/// is the most frequent of comma, semicolon and tab in the first line. Blank lines are left out.
/// @throws UserError (data) for bytes that are not UTF-8; (environment)
std::vector<CsvRow> read_csv(const std::string& path);

}  // namespace rematch
