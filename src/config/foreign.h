#pragma once
#include <string>
#include <vector>

namespace rematch {

/// A name that users of other trainers type, and what it is called here.
struct ForeignKey {
  const char* name;    ///< the last part of their key
  const char* key;     ///< ours, dotted; "" without a counterpart
  const char* answer;  ///< what else to know, or what to do instead; may be "" when `key` is not
};

/// The table of foreign keys.
const std::vector<ForeignKey>& foreign_table();

/// The row of a name as typed: case and `-` for `_` do not matter. nullptr when there is none.
const ForeignKey* find_foreign(const std::string& name);

/// Advice for a foreign key, as the `fix` of an error.
std::string foreign_fix(const ForeignKey& row);

/// Our key for a name as typed (`max_steps`, `--lr`, `training.max_steps`): exact, foreign, the end
/// of a key's path or the nearest one; "" when nothing is near.
std::string meant_key(const std::string& typed);

/// The value of our key for that of a foreign one: `imgsz` is a side, `max_pixels` an area.
std::string meant_value(const std::string& typed, const std::string& value);

}  // namespace rematch
