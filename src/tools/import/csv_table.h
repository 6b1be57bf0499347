#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// The cells of a row by the names of their columns, in lower case without anything but letters and
/// digits: "X_Min" and "xmin" are one.
using CsvRow = std::map<std::string, std::string>;

/// The cell of the first of several columns, divided by blanks, that is there; null without one.
const std::string* find_cell(const CsvRow& row, const char* columns);
/// Its text; "" without one.
std::string cell_of(const CsvRow& row, const char* columns);

/// Reads a CSV (RFC 4180) row by row: cells may stand between quotes, also over several lines, and
/// are trimmed. The separator is the most frequent of comma, semicolon and tab in the first line.
class CsvTable {
 public:
  /// Reads the first row: the names of the columns.
  /// @throws UserError (data) for another encoding than UTF-8, and for two columns of one name;
  /// (environment) if the file cannot be read
  explicit CsvTable(const std::string& path);

  CsvRow columns;      ///< of every row, with empty cells
  std::string header;  ///< names of the columns as written, between commas
  int64_t line = 1;    ///< where the row begins

  /// Goes to the next row that is not blank.
  /// @return false at the end
  /// @throws UserError (data) for a quote that does not end: rows after it would be one cell
  bool next();
  /// The cells of the row; a missing one is empty.
  CsvRow row() const;
  /// True if the row has text in more cells than there are columns.
  bool has_more_cells() const;

 private:
  /// Reads a row into the cells; false if it is blank.
  bool read_cells();

  std::string path_, text_;
  char separator_ = ',';
  size_t at_ = 0;
  int64_t next_line_ = 1;
  Strings names_, cells_;
};

}  // namespace rematch
