#pragma once
#include <string>
#include <vector>

#include "program/config/config.h"

namespace rematch {

/// The heading of a key: its first part, or the stage-2 section; "" at the top level.
std::string key_group(const std::string& path);
/// The key's path without its group.
std::string name_in_group(const std::string& path);
/// Sorts rows by group; groups are in the order of their first row.
std::vector<const EffectiveValue*> sort_by_group(std::vector<const EffectiveValue*> rows);

}  // namespace rematch
