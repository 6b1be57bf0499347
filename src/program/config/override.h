#pragma once
#include <string>
#include <vector>

#include "program/config/node.h"

namespace rematch {

/// Reads one `--set a.b.c=value` into nested maps; the value is a YAML scalar or flow collection.
/// If YAML would drop a part of the value (a comment, directive, document mark or anchor), the
/// problem shows the quoted value. Only an empty value, `~` and `null` are null.
/// @return a null node if there is a problem
Node read_override(const std::string& text, std::vector<Problem>& problems);

}  // namespace rematch
