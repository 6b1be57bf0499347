#pragma once
#include <string>

namespace rematch {

/// The text of a prompt file without its byte order mark and the blanks at its ends.
/// @throws UserError (config) when it cannot be read, has more than 1 MiB, is not UTF-8 or blank
std::string read_prompt_file(const std::string& path);

}  // namespace rematch
