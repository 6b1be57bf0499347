#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// Finds which of many texts (the added tokens of a vocabulary) a string contains.
class ForbiddenTexts {
 public:
  explicit ForbiddenTexts(const std::vector<std::string>& texts);
  /// A forbidden text contained in `text`, or nullptr. Cost: |text| · (number of forbidden texts
  /// that share a first byte).
  const std::string* find_in(std::string_view text) const;

 private:
  std::array<std::vector<std::string>, 256> by_first_byte_;
};

/// Context of the line that read_record reads.
struct RecordContext {
  std::string where;      ///< "path:line"
  std::string directory;  ///< relative image paths are resolved against it
  bool require_single_image = true;
  /// boxes with swapped corners are legal: the caller looks for them
  bool allow_inverted = false;
  const ForbiddenTexts* forbidden = nullptr;
};

/// Reads one line of a JSONL by the rules of BEHAVIOUR 2.1–2.3 and 19.10; sample_id is left for the
/// caller.
/// @throws UserError (data) naming line, field and object: the record's first problem, or the first
/// of each of its objects
Sample read_record(std::string_view line, const RecordContext& context);

}  // namespace rematch
