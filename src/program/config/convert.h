#pragma once
#include <vector>

#include "base/error.h"
#include "program/config/key.h"
#include "program/config/node.h"

namespace rematch {

/// Converts a YAML value to the key's type. A value of the wrong type, out of range or not among
/// the choices appends a problem and returns null. Null and the key's `null_words` return null.
KeyValue convert(const KeySpec& spec, const Node& node, std::vector<Problem>& problems);

}  // namespace rematch
