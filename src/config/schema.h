#pragma once
#include <string>
#include <vector>

#include "config/key.h"

namespace rematch {

/// The table of all keys, in the order of the documentation.
const std::vector<KeySpec>& schema();
/// Adds a key from another table (loss terms). Call it before the first use of the table.
void add_key(KeySpec spec);

/// Finds the key with exactly this path, nullptr if there is none.
const KeySpec* find_key(const std::string& path);
/// True if there are keys below `path` ("" is the root).
bool is_section(const std::string& path);
/// Suggests at most three existing keys for an unknown one, best first: the same name in another
/// section, similar names in this section, similar names in others.
/// @param section  dotted path of the section
/// @param name     the unknown key
std::vector<std::string> suggest_keys(const std::string& section, const std::string& name);

/// Prefix of every stage-2 key.
inline const std::string kRolloutMatching = "custom.extra.rollout_matching";
/// Section of the losses on coord slots.
inline const std::string kCoordLosses = "custom.coord_soft_ce_w1";

}  // namespace rematch
