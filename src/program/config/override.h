#pragma once
#include <string>
#include <vector>

#include "program/config/node.h"

namespace rematch {

/// Reads one `--set a.b.c=value` into nested maps. A value that begins with a quote, `[` or `{` is
/// YAML, in which nothing may be dropped (a comment, anchor or tag); `~`, `null` and nothing are
/// null; any other value is the text as it stands.
/// @return a null node if there is a problem
Node read_override(const std::string& text, std::vector<Problem>& problems);

}  // namespace rematch
