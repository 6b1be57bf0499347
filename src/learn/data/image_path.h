#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rematch {

/// True for the bytes of an image (base64) in place of a path.
bool is_inside_record(std::string_view path);

/// The path itself, or that of the file whose name is the same in the other Unicode form, if only
/// that one exists.
std::string existing_form(const std::string& path);

/// Says why a path of `images` leads to no file: an address, an image inside the record, a name
/// that is not there. Cost: one stat; two for a missing file.
/// @return without a place; nullopt for a regular file
std::optional<Problem> find_path_problem(const std::string& path);

}  // namespace rematch
