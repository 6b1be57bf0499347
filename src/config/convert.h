#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "config/node.h"
#include "config/schema.h"

namespace rematch {

/// A key's default as JSON (null when it has none).
Json default_value(const KeySpec& spec);

/// A written value as the key's type; appends a problem (and returns null) when it is of another
/// type, outside the range or not among the choices. Null and the key's own words for null give
/// null.
Json convert(const KeySpec& spec, const Node& node, std::vector<Problem>& problems);

/// Any tree as JSON: plain true/false/null and numbers keep their types, everything else becomes
/// text.
Json free_json(const Node& node);

}  // namespace rematch
