#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/flow/object_json.h"

namespace rematch {

/// Context of the line for read_record.
struct RecordContext {
  std::string where;      ///< "path:line"
  std::string directory;  ///< base of relative image paths
  bool require_single_image = true;
  bool allow_inverted = false;  ///< accepts boxes with swapped corners; the caller handles them
  const ForbiddenTexts* forbidden = nullptr;
  std::optional<std::string> name_all = {};  ///< as in DatasetOptions
};

/// Reads one line of a JSONL by the rules of BEHAVIOUR 2.1–2.3 and 19.10; the caller sets
/// sample_id.
/// @throws UserError (data) with line, field and object of the record's first problem, or of the
/// first problem in each object
Sample read_record(std::string_view line, const RecordContext& context);

}  // namespace rematch
