#pragma once
#include <string>

namespace rematch {

/// Reads a prompt file and strips its byte order mark and the white space at its ends.
/// @throws UserError (config) if it cannot be read, is larger than 1 MiB, not UTF-8, or blank
std::string read_prompt_file(const std::string& path);

}  // namespace rematch
