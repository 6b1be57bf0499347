#pragma once
#include <optional>
#include <string>

#include "base/error.h"

namespace rematch {

/// The error for a path given as a configuration that is something else: a directory, a checkpoint,
/// a JSONL of records; none for a file that may be one. @param named_at  where the path is named
std::optional<Problem> wrong_file(const std::string& path, const std::string& named_at);

}  // namespace rematch
