#pragma once
#include <set>
#include <string>
#include <vector>

#include "program/config/key.h"

namespace rematch {

/// The table of all keys, in the order of the documentation.
const std::vector<KeySpec>& schema();
/// Adds a key from another table (loss terms). Call it before the first use of the table.
void add_key(KeySpec spec);

/// Finds the key with exactly this path, nullptr if there is none.
const KeySpec* find_key(const std::string& path);
/// All paths with keys below them; "" is the root.
const std::set<std::string>& sections();
bool is_section(const std::string& path);
/// The heading of a key: its first part, or the stage-2 section; "" at the top level.
std::string key_group(const std::string& path);
/// The key's path without its group.
std::string name_in_group(const std::string& path);

/// Prefix of every stage-2 key.
inline const std::string kRolloutMatching = "custom.extra.rollout_matching";
/// Section of the losses on coord slots.
inline const std::string kCoordLosses = "custom.coord_soft_ce_w1";

}  // namespace rematch
