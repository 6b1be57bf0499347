#pragma once
#include <string>
#include <string_view>

#include "flow/object_json.h"

namespace rematch {

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
