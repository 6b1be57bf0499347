#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "program/config/node.h"
#include "program/config/schema.h"

namespace rematch {

/// A key's default as JSON; null if it has none.
Json default_value(const KeySpec& spec);

/// Converts a YAML value to the key's type. A value of the wrong type, out of range or not among
/// the choices appends a problem and returns null. Null and the key's `null_words` return null.
Json convert(const KeySpec& spec, const Node& node, std::vector<Problem>& problems);

/// Converts a tree to JSON without a schema: unquoted true, false, null and numbers keep their
/// types, other scalars become text.
Json untyped_json(const Node& node);

}  // namespace rematch
