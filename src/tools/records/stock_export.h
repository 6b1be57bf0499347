#pragma once
#include <cstdint>
#include <string>

#include "base/output_file.h"
#include "learn/data/stock_answer.h"

namespace rematch {

/// Options for converting records to conversations.
struct StockExport {
  StockScale scale;        ///< unit of the coordinates
  std::string usual_text;  ///< user's text of records without a `prompt`
  InputFiles inputs{};     ///< more input files: those of the model that decides `scale`
};

/// Writes conversations for stock trainers: JSON lines with `messages` (the user's text after the
/// image mark, the answer from format_stock_answer()), `images`, and the record's `summary` and
/// `metadata`.
/// @return number of records
/// @throws UserError (data) for records that training would refuse, or that have a polygon, several
/// images, or an image mark in their prompt; (configuration) if `out` is the file, one of its
/// images or one of `inputs`; (environment) if a file cannot be read or written
int64_t write_stock_file(const std::string& path, const std::string& out,
                         const StockExport& options);

}  // namespace rematch
