#pragma once
#include <string>
#include <vector>

#include "config/node.h"

namespace rematch {

/// One `--set a.b.c=value` as a tree of maps down to the value, a YAML scalar or flow collection.
/// A value of which YAML would drop a part (a comment, a directive, a document mark, an anchor) is
/// a problem that says how to quote the value; only an empty value, `~` and `null` are null.
/// @return null when there is a problem
Node read_override(const std::string& text, std::vector<Problem>& problems);

}  // namespace rematch
