#pragma once
#include <optional>
#include <string>

#include "base/error.h"

namespace rematch {

/// Returns an error if `path` is a directory, a checkpoint or a JSONL of records instead of a
/// configuration file; else nullopt.
/// @param named_at  position that names the path
std::optional<Problem> check_file_kind(const std::string& path, const std::string& named_at);

}  // namespace rematch
