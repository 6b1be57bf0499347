#pragma once
#include <optional>
#include <string>

#include "base/error.h"

namespace rematch {

/// Says why a path of `images` leads to no file: an address, an image inside the record, a name
/// that is not there. Cost: one stat.
/// @return without a place; nullopt for a regular file
std::optional<Problem> find_path_problem(const std::string& path);

}  // namespace rematch
