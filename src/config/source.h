#pragma once
#include <string>
#include <vector>

#include "config/node.h"

namespace rematch {

/// A configuration after `extends` and `--set`, before any key is examined.
struct Source {
  Node root;                       ///< always a map; `extends`/`inherit` taken out
  std::vector<std::string> files;  ///< every file read, bases before the files that extend them
};

/// Reads `path` and, recursively, the files its `extends` (or `inherit`) names, relative to the
/// file that names them. Bases merge left to right, the file itself last; then each override
/// `a.b.c=value` (value: YAML scalar or flow style) in order. Cycles (with the chain), missing
/// files and everything that parse_yaml finds become problems; a diamond is legal. Without a path
/// the overrides are all.
Source load_source(const std::string& path, const std::vector<std::string>& overrides,
                   std::vector<Problem>& problems);

}  // namespace rematch
