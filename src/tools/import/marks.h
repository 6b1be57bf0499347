#pragma once
#include "base/json.h"
#include "tools/import/foreign.h"

namespace rematch {

/// The note for an object that shows many, or that is marked as one.
inline constexpr char kCrowd[] = "crowds, which are no objects";

/// Reads the marks of an object, which may also be in its `attributes` (CVAT) or `flags` (labelMe):
/// those that make it none ("iscrowd", "ignore"), and the angle of its box. Counts objects
/// marked difficult, and those with a score below 1, which a model has answered.
void read_marks(const Json& value, ForeignEntry& entry, Ledger& ledger);

}  // namespace rematch
