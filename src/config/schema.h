#pragma once
#include <string>
#include <vector>

#include "config/key.h"

namespace rematch {

/// The table of all keys, in the order of the documentation.
const std::vector<KeySpec>& schema();
/// Adds a key that a table elsewhere calls for (loss terms). Call before the table is first read.
void add_key(KeySpec spec);

/// The row of exactly that path, or nullptr.
const KeySpec* find_key(const std::string& path);
/// True when keys lie below `path` ("" is the root).
bool is_section(const std::string& path);
/// Suggestions for a key that does not exist, best first, at most three: the same name elsewhere,
/// similar names next to it, similar names elsewhere.
/// @param section  dotted path of its section. @param name  the unknown key
std::vector<std::string> suggest_keys(const std::string& section, const std::string& name);

/// Prefix of every stage-2 key.
inline const std::string kRolloutMatching = "custom.extra.rollout_matching";
/// Section of the losses on coord slots.
inline const std::string kCoordLosses = "custom.coord_soft_ce_w1";

}  // namespace rematch
