#pragma once
#include <vector>

#include "base/json.h"
#include "program/config/key.h"
#include "program/config/node.h"

namespace rematch {

/// Converts the value of a KeyType::kFiles: a string for one path without a weight, else a list of
/// strings and {"path", "weight"} objects. Wrong entries become problems.
Json convert_files(const KeySpec& spec, const Node& node, std::vector<Problem>& problems);

}  // namespace rematch
