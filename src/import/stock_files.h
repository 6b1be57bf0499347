#pragma once
#include <string>
#include <vector>

#include "import/foreign.h"
#include "import/stock_answer.h"

namespace rematch {

/// Options for reading conversations with stock answers.
struct StockImport {
  ImportOptions files;     ///< `polygons` is not used
  StockScale scale;        ///< unit of the coordinates
  std::string usual_text;  ///< default user text, which records omit from `prompt`
};

/// Reads conversations with lists of boxes as answers: `messages` or `conversations` records in a
/// JSON array or JSON lines, one file per split. Each answer becomes a record with its question as
/// prompt. Unreadable records, answers and entries are left out, counted and listed as examples.
/// @throws UserError (data) if nothing is left, or most coordinates are not in the unit of `scale`;
/// (configuration) if two files are the same split; (environment) if a file cannot be read
ForeignSet read_stock_files(const std::vector<std::string>& paths, const StockImport& options);

}  // namespace rematch
