#pragma once
#include <string>
#include <vector>

#include "program/config/node.h"

namespace rematch {

/// A configuration after `extends` and `--set`, before its keys are checked.
struct Source {
  Node root;      ///< always a map, without `extends` and `inherit`
  Strings files;  ///< all files that were read, bases before their extensions
};

/// Reads `path` and, recursively, the files named by `extends` (or `inherit`), relative to the file
/// that names them. Merges the bases left to right, then the file, then the overrides in order
/// (`a.b.c=value`, as read_override() reads them). Cycles, missing files and the findings of
/// parse_yaml become problems; two files may share a base. An empty path: only the overrides.
Source load_source(const std::string& path, const Strings& overrides,
                   std::vector<Problem>& problems);

}  // namespace rematch
