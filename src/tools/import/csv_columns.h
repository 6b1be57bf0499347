#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/flow/box_form.h"
#include "tools/import/csv_table.h"

namespace rematch {

/// Which columns of a CSV have what; -1 for a column that is not there.
struct CsvColumns {
  int image = -1, name = -1, width = -1, height = -1, crowd = -1;
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
