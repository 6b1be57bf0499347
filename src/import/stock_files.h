#pragma once
#include <string>
#include <vector>

#include "import/foreign.h"
#include "import/stock_answer.h"

namespace rematch {

/// Options for reading conversations with stock answers.
struct StockImport {
  ImportOptions files;     ///< `polygons` has no meaning here
  StockScale scale;        ///< unit of the coordinates
  std::string usual_text;  ///< the user's text that a record need not repeat as its `prompt`
};

/// Conversations with lists of boxes as answers: `messages` or `conversations` records in a JSON
/// array or in JSON lines, one file for each split. Every answer becomes a record with the text
/// that asked for it. What cannot be read (a record, an answer, an entry) is left out, counted and
/// named.
/// @throws UserError (data) when nothing is left, or when most coordinates are not in the unit of
/// `scale`; (configuration) when two files are the same split; (environment) when a file cannot be
/// read
ForeignSet read_stock_files(const std::vector<std::string>& paths, const StockImport& options);

}  // namespace rematch
