#pragma once
#include <string>
#include <vector>

namespace rematch {

/// Keys of other trainers and their counterpart here.
struct ForeignKey {
  const char* names;   ///< last parts of the foreign keys, separated by blanks
  const char* key;     ///< our dotted key; "" if there is none
  const char* answer;  ///< remark, or advice if `key` is ""
};

/// The table of foreign keys.
const std::vector<ForeignKey>& foreign_table();

/// Finds the row of a name as typed, ignoring case and reading `-` as `_`; nullptr if there is
/// none.
const ForeignKey* find_foreign(const std::string& name);

/// Advice for a foreign key, as the `fix` of an error.
std::string foreign_fix(const ForeignKey& row);

/// Guesses our key for a name as typed (`max_steps`, `--lr`, `training.max_steps`): an exact match,
/// a foreign key, the end of a key's path, or the nearest key; "" if nothing is near.
std::string guess_key(const std::string& typed);

/// The value of our key for that of a foreign one: `imgsz` is a side, `max_pixels` an area.
std::string meant_value(const std::string& typed, const std::string& value);

}  // namespace rematch
