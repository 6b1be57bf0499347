#pragma once
#include <string>
#include <vector>

namespace rematch {

/// Reads the lines of a text file without its byte order mark. A line may end in "\r".
/// @throws UserError (data) for UTF-16; (environment) if the file cannot be read
std::vector<std::string> read_lines(const std::string& path);

}  // namespace rematch
