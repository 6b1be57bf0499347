#pragma once
#include <cstdint>
#include <string>

#include "base/output_file.h"
#include "import/stock_answer.h"

namespace rematch {

/// Options for turning records into conversations.
struct StockExport {
  StockScale scale;        ///< unit of the coordinates
  std::string usual_text;  ///< the user's text of records without a `prompt`
  InputFiles inputs{};     ///< files read besides: those of the model that `scale` is taken from
};

/// Writes conversations that stock trainers read: JSON lines with `messages` (the user's text after
/// the image's mark, the answer as stock_answer_text writes it) and `images`.
/// @return the number of records
/// @throws UserError (data) for records that training would refuse, with a polygon, several images,
/// or the image's mark in their prompt; (configuration) when `out` is the file, an image of it or
/// one of `inputs`; (environment) when a file cannot be read or written
int64_t write_stock_file(const std::string& path, const std::string& out,
                         const StockExport& options);

}  // namespace rematch
