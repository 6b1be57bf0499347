#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/box_form.h"

namespace rematch {

/// A row of a CSV with its line.
struct CsvRow {
  int64_t line = 0;
  std::vector<std::string> cells;  ///< trimmed
};

/// Reads a CSV (RFC 4180): cells may stand between quotes, also over several lines. The separator
/// is the most frequent of comma, semicolon and tab in the first line. Blank lines are left out.
/// @throws UserError (data) for UTF-16 or bytes that are not UTF-8
std::vector<CsvRow> read_csv(std::string_view bytes, const std::string& path);

/// Which columns of a CSV have what; -1 for a column that is not there.
struct CsvColumns {
  int image = -1, name = -1, width = -1, height = -1, crowd = -1;
  int angle = -1;                          ///< of a rotated box, which is not read
  std::array<int, 4> box{-1, -1, -1, -1};  ///< in the order of `form`
  int box_text = -1;                       ///< one cell with four numbers
  BoxForm form = BoxForm::kCorners;
  bool is_normalized = false;  ///< OpenImages: XMin … are shares of the sides
  bool has_header = true;
};

/// Finds the columns by the names of the first row (TensorFlow, OpenImages, DeepForest, Kaggle, …),
/// or by its form (RetinaNet: path, x1, y1, x2, y2, class without names); nullopt for others.
std::optional<CsvColumns> find_csv_columns(const std::vector<CsvRow>& rows);

}  // namespace rematch
