#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// Searches strings for any of many texts (the added tokens of a vocabulary).
class ForbiddenTexts {
 public:
  explicit ForbiddenTexts(const std::vector<std::string>& texts);
  /// Finds a forbidden text in `text`, nullptr if there is none. Cost: |text| · (number of
  /// forbidden texts that share a first byte).
  const std::string* find_in(std::string_view text) const;

 private:
  std::array<std::vector<std::string>, 256> by_first_byte_;
};

/// Context of the line for read_record.
struct RecordContext {
  std::string where;      ///< "path:line"
  std::string directory;  ///< base of relative image paths
  bool require_single_image = true;
  bool allow_inverted = false;  ///< accepts boxes with swapped corners; the caller handles them
  const ForbiddenTexts* forbidden = nullptr;
};

/// Reads one line of a JSONL by the rules of BEHAVIOUR 2.1–2.3 and 19.10; the caller sets
/// sample_id.
/// @throws UserError (data) with line, field and object of the record's first problem, or of the
/// first problem in each object
Sample read_record(std::string_view line, const RecordContext& context);

}  // namespace rematch
